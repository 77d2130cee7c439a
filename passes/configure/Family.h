// The configurations that a kernel family has for one kernel, in factored form, and what families
// share to list them. The families themselves: kernel/Family.h, codegen/families.
#pragma once

#include "kernel/Family.h"
#include "passes/configure/Families.h"

#include <string>
#include <vector>

namespace weft {

constexpr int64_t maximumAccessBytes = 16;  ///< of one load or store of a thread
constexpr int64_t gridPartialsLimit =
    int64_t(4) << 20;  ///< bytes of device memory that a kernel may keep for itself (a choice)

/// The configurations of one family for one kernel: every layout choice with every knob that
/// `isUseful`. Layouts are either a Cartesian product (one list an operand) or an explicit list of
/// tuples, whichever the family's rule is.
struct ConfigurationSpace {
  const Family *family = nullptr;
  std::vector<std::vector<Layout>> choices =
      {};  ///< per operand, their Cartesian product; empty if `tuples` is used
  std::vector<LayoutTuple> tuples = {};
  std::vector<Knobs> knobs = {};
  bool hasSeveralStrides = false;  ///< tuples of GEMMs with several strides along a group of
                                   ///< axes (kernel/MultiStrideGemm.h)

  bool isEmpty() const { return knobs.empty() || (choices.empty() && tuples.empty()); }
};

/// The layouts besides in which an operand has several strides along a group of axes, of the family
/// that takes such (Family::severalStrides). Nothing where none takes the kernel so.
std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device);
/// Of them those that have what is fixed, and those of a fixed result that has several strides
/// itself.
std::optional<ConfigurationSpace> severalStridesSpace(const Kernel &kernel, const Device &device,
                                                      const FixedLayouts &fixed);

/// The spaces of all families that take the kernel, but for severalStridesSpace(), in the table's
/// order; reasons of the others in `excluded`.
std::vector<ConfigurationSpace> configurationSpaces(const Kernel &kernel, const Device &device,
                                                    std::vector<Exclusion> *excluded = nullptr);
/// The same with severalStridesSpace() behind them, where there is one.
std::vector<ConfigurationSpace> everySpace(const Kernel &kernel, const Device &device);

/// Whether these knobs differ from cheaper-to-name ones under these layouts, and fit them: a vector
/// that no operand can use is the scalar kernel in disguise; single-consumer tiles of sm_90a take
/// some orientations alone.
bool isUseful(const Kernel &kernel, const LayoutTuple &layouts, const Knobs &knobs);

/// How many configurations of a space are useful, without visiting them: all combinations
/// for scalar knobs, for vectors those where some operand is accessed so. A double, because six
/// operands of 24 layouts exceed 10^8.
double countConfigurations(const Kernel &kernel, const ConfigurationSpace &space);

/// Visits every layout tuple of a space; `visit` returns false to stop. Returns false if stopped.
bool forEachTuple(const ConfigurationSpace &space,
                  const std::function<bool(const LayoutTuple &)> &visit);

/// One layout an operand and knobs as a configuration.
Configuration toConfiguration(const Kernel &kernel, const LayoutTuple &tuple, const Knobs &knobs);

/// Operand values: inputs, then outputs.
std::vector<ValueId> operandValues(const Kernel &kernel);

/// Dimensions with extent above 1 of which every order is told apart; tensors of transformer layers
/// have at most 5.
constexpr int mostPermuted = 5;
/// The dense layouts worth telling apart: permutations of the dimensions with extent above 1;
/// dimensions of extent 1 come first, where they change no stride. Values of rank 1 have one. Of
/// more than `mostPermuted` such dimensions, whose orders are too many, those in which one run of
/// them is moved from its place in logical order. Sorted.
std::vector<Layout> distinctLayouts(const std::vector<int64_t> &extents);
/// These, and those with padded rows where padded() has any.
std::vector<Layout> distinctAndPaddedLayouts(const Kernel &kernel, ValueId value);
/// The padded() form of a layout of a value.
std::optional<Layout> paddedLayout(const Kernel &kernel, ValueId value, const Layout &layout);
/// How many orders of the dimensions with extent above 1 there are.
double countLayouts(const std::vector<int64_t> &extents);
/// The member of distinctLayouts() with the same strides, for any dense layout.
Layout normalized(const Layout &layout, const std::vector<int64_t> &extents);

/// Whether an operand is read or written `width` neighbours at once along a kernel axis, in
/// accesses of at most 16 bytes: the axis is its fastest, and every other stride and the offset
/// keep the alignment. Code generation falls back to single elements otherwise.
bool isVectorAccessed(const Kernel &kernel, ValueId value, const Layout &layout, AxisId axis,
                      int width);

}  // namespace weft
