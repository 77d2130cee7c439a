// A kernel family: which kernels it accepts, in which configurations, at what price, and how they
// are lowered. All code that handles kernels calls these functions; nothing lists families but the
// registry (codegen/families/Registry.cpp), and nothing switches over them.
//
// Adding one: its folder below codegen/families with a struct of knobs, the table of its fields, a
// `Family` and its functions; and one line in the registry.
#pragma once
#ifndef WEFT_KERNEL_FAMILY_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_FAMILY_H

#include "kernel/BlockCombine.h"
#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "kernel/Expected.h"
#include "kernel/Schedule.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

struct ConfigurationSpace;  // passes/configure/Family.h
struct Cost;                // passes/configure/Cost.h
struct CopyReason;          // passes/configure/CopyReason.h
class OperandSums;          // passes/configure/OperandSums.h
namespace codegen {
struct Program;  // codegen/Program.h
}

/// Layouts of every operand: inputs first, then outputs.
using LayoutTuple = std::vector<Layout>;
/// Of every operand, in that order, the layout that it has to have, or none.
using FixedLayouts = std::vector<std::optional<Layout>>;

/// What one block computes of a result: rows and columns of C, or queries and keys of scores.
struct BlockTile {
  int64_t rows = 0, columns = 0;
  int64_t multicast = 1;  ///< blocks of a cluster that load what belongs to the columns once
};

/// What tells knobs apart beside the number of threads.
struct KnobStructure {
  std::vector<int> fields;
  int vectorWidth = 1;
  bool reducesRows = false;
};

struct Family {
  std::string_view name;  ///< "gemm-sm90": in plans, profiles, graphs and messages
  /// Bumped when the speed of its kernels changes; part of profile keys.
  int version = 1;
  /// Whether its kernels are one GEMM, alone or with a prologue or epilogue: alone they are timed
  /// and kept in profiles as GEMMs, whatever the kernel's axes are.
  bool isGemm = false;
  /// Whether its kernels are views, which launch nothing.
  bool isView = false;
  /// Whether its kernels are calls of a library. Its space lists layouts alone: which algorithms
  /// the library has depends on the GPU, and its knobs name one.
  bool isLibrary = false;
  /// Whether its kernels change the layout of one tensor and do nothing else.
  bool isTranspose = false;
  /// Whether it is slow wherever another family takes the kernel: messages say so.
  bool isPlaceholder = false;
  /// Whether its space lists all knobs that are legal: others in a profile are not used.
  bool listsEveryKnob = false;
  bool takesEpilogues = false;  ///< of contractions (kernel/ContractionRegion.h)
  bool takesPrologues = false;
  /// Whether its epilogues may begin with a rotary embedding (ContractionRegion::rotary).
  bool rotatesPairs = false;
  bool takesAttention = false;  ///< fused attentions (kernel/AttentionRegion.h)
  /// Their backward passes (kernel/AttentionBackwardRegion.h).
  bool takesAttentionBackward = false;
  /// Of a family whose time hardly depends on layouts: the margin (passes/configure/Margins.h) at
  /// which a measurement of a kernel, times the ratio of the estimates, prices the kernel under
  /// layouts that have none. Nothing: it does not.
  std::optional<double> marginOfOtherLayouts = {};
  /// The fields of its knobs, in the order of the struct.
  std::span<const ScheduleField> schedule = {};
  /// Knobs with every field at its default.
  const Knobs &(*defaults)() = nullptr;
  std::strong_ordering (*compare)(const Knobs &, const Knobs &) = nullptr;
  /// Readable and unambiguous: "vector 8 x f16 along i, one warp a row, 4 rows a block".
  std::string (*describe)(const Kernel &, const Knobs &) = nullptr;

  /// The configurations of a kernel, or why there are none.
  Expected<ConfigurationSpace, Reason> (*space)(const Kernel &, const Device &) = nullptr;
  /// Further layouts, with several strides along a group of axes: all, or those that agree with
  /// `fixed`, and those of a fixed result that has several strides itself. None: the family
  /// supports one stride.
  std::optional<ConfigurationSpace> (*severalStrides)(const Kernel &, const Device &,
                                                      const FixedLayouts *fixed) = nullptr;
  /// Whether these knobs fit the layouts and no simpler knobs give the same kernel. None: always.
  bool (*isUseful)(const Kernel &, const LayoutTuple &, const Knobs &) = nullptr;
  /// The axis and width of a thread's accesses, where the space is a product of layouts and
  /// isUseful asks only whether some operand has such accesses: for counting. None: all knobs
  /// are useful.
  std::pair<int, int> (*vectorAccess)(const Knobs &) = nullptr;
  /// Whether a contraction is a GEMM of the family under layouts that have several strides.
  bool (*takesStrides)(const Kernel &, const LayoutTuple &) = nullptr;
  /// Whether families behind it in the table leave a kernel in these layouts to it, on such a
  /// device; they ask weft::claimantOf(). None: they do not.
  bool (*claims)(const Kernel &, const LayoutTuple &, const Device &) = nullptr;
  /// Why a configuration that a user names is not emitted; empty if it is. None: what the space has
  /// is emitted.
  std::string (*rejection)(const Kernel &, const Configuration &, const Device &) = nullptr;
  /// Whether a configuration is emitted though the space does not list it, because a kernel
  /// template takes more than enumeration offers. None: it is not.
  bool (*takesUnlisted)(const Kernel &, const Configuration &, const Device &) = nullptr;
  /// Knobs that no space has and a profile measures, best first, for a GEMM alone under these
  /// layouts. None: there are none.
  std::vector<Knobs> (*unlistedKnobs)(const Kernel &, const LayoutTuple &,
                                      const Device &) = nullptr;
  /// The estimate for a configuration of the space; the caller fills in bytesNecessary and flop.
  Cost (*price)(const Kernel &, const Configuration &, const Device &) = nullptr;
  /// The same of all configurations of a space whose layouts are a product, where the estimate
  /// under fixed knobs is a sum of one term an operand; `margin`: CostModel::separableMargin. None:
  /// they are priced one by one.
  std::unique_ptr<OperandSums> (*operandSums)(const Kernel &, const Device &, double margin,
                                              const ConfigurationSpace &,
                                              const std::vector<std::vector<Layout>> &) = nullptr;

  /// Whether a contraction along packed tokens ends its sum with the last one
  /// (kernel/UnusedTokens.h: summedTokens). None: it adds the zeros behind it.
  bool (*endsSums)(const Kernel &, const Knobs &) = nullptr;
  /// How the threads of a block combine what they have of a row; nothing: no block shares one.
  std::optional<BlockCombine> (*blockCombine)(const Knobs &) = nullptr;
  /// None: the family has no knobs that differ in threads alone.
  KnobStructure (*structure)(const Knobs &) = nullptr;
  /// Of GEMMs and fused attentions. None: the family does not say.
  BlockTile (*blockTile)(const Knobs &) = nullptr;

  /// Of the family that takes any kernel which only copies: its program, where a thread moves
  /// `width` neighbours along an axis, or single elements in the result's order (no axis). None:
  /// the family has none.
  codegen::Program (*lowerCopy)(const Kernel &, const Configuration &, AxisId along, int width,
                                int threads) = nullptr;
  /// Kernel and configuration to kernel program; the kernel comes with the names to be used. None:
  /// its kernels are not emitted by weft.
  codegen::Program (*lower)(const Kernel &, const Configuration &) = nullptr;
  /// Why such a kernel is not emitted for a target ("sm_80"); empty if it is. None: every target.
  std::string (*targetRejection)(const Kernel &, const Knobs &, std::string_view target) = nullptr;
  /// Bytes of device memory that one launch works in beside its inputs and outputs: the plan packs
  /// it with its temporaries, at a multiple of 256 bytes, and the program takes its address as one
  /// parameter of kind `workspace`. What lies in it before a launch is undefined, after it lost. 0,
  /// or no function: none. A text that starts early waits before it touches it.
  int64_t (*workspaceBytes)(const Kernel &, const Configuration &) = nullptr;

  /// The same where the knobs alone say it, as those of a library do: the plan then has it in its
  /// knobs. None: `workspaceBytes` says it.
  int64_t (*workspaceOfKnobs)(const Knobs &) = nullptr;
  /// Positions of the inputs in whose memory output 0 may lie (weft::overwritableInputs). None: of
  /// no input.
  std::vector<size_t> (*overwritableInputs)(const Kernel &, const Configuration &) = nullptr;
  /// Of the family of views: why a kernel that might be one moves elements in this configuration.
  std::optional<CopyReason> (*whyCopied)(const Kernel &, const Configuration &) = nullptr;

  bool hasText() const { return lower != nullptr; }
  bool operator==(const Family &other) const { return this == &other; }
};

/// What every family's `defaults` and `compare` are.
template <FamilyKnobs Struct>
const Knobs &defaultKnobs() {
  static const Knobs defaults = Struct{};
  return defaults;
}
template <FamilyKnobs Struct>
std::strong_ordering compareKnobs(const Knobs &a, const Knobs &b) {
  return a.get<Struct>() <=> b.get<Struct>();
}

/// Bytes that a launch of the configuration works in (Family::workspaceBytes); 0: none, and of a
/// family whose knobs say it (Family::workspaceOfKnobs). Throws Error(checkFailed) if the family
/// names less than none.
int64_t workspaceBytesOf(const Kernel &kernel, const Configuration &configuration);

/// Positions of the inputs in whose memory the kernel's output 0 may lie, ascending: of an append
/// the cache alone, else those that the family names.
std::vector<size_t> overwritableInputs(const Kernel &kernel, const Configuration &configuration);

/// All families, in the order of enumeration: cheapest first, and ties of prices go to the first.
/// The registry defines it.
std::span<const Family *const> families();
/// Adds one at the end: for tests, before anything else asks for families.
struct FamilyRegistration {
  explicit FamilyRegistration(const Family &family);
};

/// The first family of which this holds, as &Family::isView. Throws Error(checkFailed) where there
/// is none.
const Family &familyWith(bool Family::*property);
/// The first family of which this holds that claims a kernel in these layouts (Family::claims);
/// nothing if none does.
const Family *claimantOf(bool Family::*property, const Kernel &kernel, const LayoutTuple &layouts,
                         const Device &device);
/// The family of a name; nothing if there is none.
const Family *familyNamed(std::string_view name);
/// "cublaslt, gemm-sm80, ...": sorted by name, for messages.
std::vector<std::string> familyNames();

/// Names one family, or none yet: what plans hold.
class FamilyId {
public:
  FamilyId() = default;
  FamilyId(const Family &family) : family(&family) {}
  /// Empty where there is none.
  std::string_view name() const { return family ? family->name : std::string_view(); }
  bool isView() const { return family && family->isView; }
  bool isLibrary() const { return family && family->isLibrary; }
  bool isTranspose() const { return family && family->isTranspose; }
  bool isPlaceholder() const { return family && family->isPlaceholder; }
  std::span<const ScheduleField> schedule() const {
    return family ? family->schedule : std::span<const ScheduleField>();
  }
  bool operator==(const FamilyId &) const = default;
  friend bool operator==(const FamilyId &a, const Family &b) { return a.family == &b; }

private:
  const Family *family = nullptr;
};

}  // namespace weft

/// By its name.
template <>
struct fmt::formatter<weft::FamilyId> : fmt::formatter<std::string_view> {
  auto format(const weft::FamilyId &family, fmt::format_context &context) const {
    return fmt::formatter<std::string_view>::format(family.name(), context);
  }
};
template <>
struct fmt::formatter<weft::Family> : fmt::formatter<std::string_view> {
  auto format(const weft::Family &family, fmt::format_context &context) const {
    return fmt::formatter<std::string_view>::format(family.name, context);
  }
};

#endif  // WEFT_KERNEL_FAMILY_H
