// Which configurations of a kernel are run: all would be tens of thousands. Two configurations are
// of one class when the emitted text should have the same shape: family, vector width, how a
// reduction is spread, and for each operand whether vectors lie along its fastest dimension.
// Invariant: the choice is deterministic.
#pragma once

#include "kernel/Family.h"
#include "passes/configure/Families.h"

#include <string>
#include <vector>

namespace weft::emulate {

/// What a family says of its configurations, in tests/sampling.cpp of its folder:
///
///   const SamplingRegistration registered({.family = &LoopKnobs::family(), ...});
struct FamilySampling {
  const Family *family = nullptr;
  /// coarseClass() of its knobs. None: the family's name, so that all are of one class.
  std::string (*coarseClass)(const Knobs &) = nullptr;
  /// How an operand lies whose fastest dimension is of this axis. None: by the axis.
  std::string (*axisClass)(const Knobs &, AxisId fastest) = nullptr;
  /// Whether sample() draws its kernels: emulate_kernels runs none of TMA and WGMMA.
  bool isEmulated = true;
  /// Whether it reads operands as tensor cores do.
  bool isOnTensorCores = false;
  /// Whether it takes a contraction whose tensors are views. None: it takes none.
  bool (*takesViews)(const Kernel &, const Configuration &views) = nullptr;
  /// A device that offers it more contractions than an H200 does. None: no device does.
  const char *otherDevice = nullptr;
};
struct SamplingRegistration {
  explicit SamplingRegistration(const FamilySampling &sampling);
};
/// Those of all families that are linked.
const std::vector<FamilySampling> &samplings();
/// What the family of these knobs says; of one that says nothing, a sampling without functions.
const FamilySampling &samplingOf(const Knobs &knobs);

/// "loop vector 4 warp 8": what must be covered.
std::string coarseClass(const Knobs &knobs);
/// The coarse class and the layout class of every operand.
std::string fineClass(const Kernel &kernel, const Configuration &configuration);

/// One configuration of every coarse class, then one of further fine classes until `limit` is
/// reached; within a class a seeded draw decides. Kernels without code (views) are left out.
std::vector<Configuration> sample(const Kernel &kernel, const Device &device,
                                  const LayoutConstraints &constraints, size_t limit);

/// The same configuration where every tensor is a view of a larger one: `padding` elements before
/// it and behind every line.
Configuration asViews(const Kernel &kernel, const Configuration &configuration, int64_t padding);

}  // namespace weft::emulate
