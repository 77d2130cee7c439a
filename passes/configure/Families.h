// Which configurations a kernel may take. MLIR-free. Families: codegen/families.
//
// A configuration returned here is legal: code generation accepts it without further checks, or
// there is a bug.
#pragma once

#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "kernel/StridedBatchedGemm.h"

#include <functional>
#include <optional>
#include <string>

namespace weft {

/// Layouts a caller fixes beforehand: one entry per input / output of the kernel; an empty optional
/// leaves it free.
struct LayoutConstraints {
  std::vector<std::optional<Layout>> inputs, outputs;
};
/// All of them, as a configuration has them.
LayoutConstraints layoutsOf(const Configuration &configuration);

/// A layout that no family can use, with the reason, for `explain`.
struct Exclusion {
  std::string family;
  std::string reason;  ///< names the axis or tensor and the limit
};

struct Configurations {
  std::vector<Configuration> legal;  ///< sorted, without duplicates
  std::vector<Exclusion> excluded;
};

/// All legal layouts x knobs of every family that accepts the kernel (design: "Selection,
/// precisely"). A contraction's layouts are every permutation that maps to one batched strided
/// GEMM; where all layouts are fixed, those with several strides along a group of axes,
/// too.
Configurations enumerate(const Kernel &kernel, const Device &device,
                         const LayoutConstraints &constraints = {});

/// The same, handed out one by one without keeping them; `visit` returns false to stop. Order is
/// deterministic.
void forEachConfiguration(const Kernel &kernel, const Device &device,
                          const LayoutConstraints &constraints,
                          const std::function<bool(const Configuration &)> &visit);

/// Asks the families that take contractions with an epilogue: the function gives each family's
/// reason, or nothing if one takes the kernel. No function where no family does. Remembers what was
/// taken: for one thread.
std::function<std::string(const Kernel &)> epilogueRejections(const Device &device);
/// The same of those that take contractions with a prologue (kernel/ContractionPrologue.h).
std::function<std::string(const Kernel &)> prologueRejections(const Device &device);
/// The same of those that take fused attentions (kernel/AttentionRegion.h).
std::function<std::string(const Kernel &)> attentionRejections(const Device &device);
/// The same of those that take the backward pass of one (kernel/AttentionBackwardRegion.h).
std::function<std::string(const Kernel &)> attentionBackwardRejections(const Device &device);
/// Of a fused attention or its backward pass that a family takes: those that run on the device and
/// are preferred to it, each with its reason not to. Empty if there is none, or none takes it.
std::string attentionFamiliesLeftOut(const Kernel &kernel, const Device &device);
/// Whether the device offers a family of this property, as &Family::takesAttention, whatever the
/// kernel.
bool offersFamilyWith(bool Family::*property, const Device &device);

}  // namespace weft
