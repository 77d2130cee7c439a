// Which configurations of loop kernels tests draw one of each of.
#include "tests/emulate/Sampling.h"
#include "codegen/families/loop/LoopKnobs.h"

#include <fmt/format.h>

namespace weft::emulate {
namespace {

std::string classOf(const Knobs &any) {
  const auto &knobs = any.get<LoopKnobs>();
  return fmt::format("loop vector {} {} {}{}", knobs.vectorWidth, nameOf(knobs.reduction),
                     knobs.threadsPerRow > 32 ? "many" : fmt::format("{}", knobs.threadsPerRow),
                     knobs.laneAxis == knobs.vectorAxis ? "" : " lanes apart");
}

std::string axisClass(const Knobs &any, AxisId fastest) {
  const auto &knobs = any.get<LoopKnobs>();
  return fastest == knobs.vectorAxis ? "along" : fastest == knobs.laneAxis ? "lanes" : "across";
}

const SamplingRegistration registered({.family = &LoopKnobs::family(),
                                       .coarseClass = classOf,
                                       .axisClass = axisClass});

}  // namespace
}  // namespace weft::emulate
