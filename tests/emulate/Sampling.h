// Which configurations of a kernel are run: all would be tens of thousands. Two configurations are
// of one class when the emitted text should have the same shape: family, vector width, how a
// reduction is spread, and for each operand whether vectors lie along its fastest dimension.
// Invariant: the choice is deterministic.
#pragma once

#include "passes/configure/Families.h"

#include <string>
#include <vector>

namespace weft::emulate {

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
