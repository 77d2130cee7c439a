// Which configurations of transposes tests draw one of each of.
#include "tests/emulate/Sampling.h"
#include "codegen/families/transpose/TransposeKnobs.h"

#include <fmt/format.h>

namespace weft::emulate {
namespace {

std::string classOf(const Knobs &any) {
  const auto &knobs = any.get<TransposeKnobs>();
  return fmt::format("transpose tile {} vector {}", knobs.tile, knobs.vectorWidth);
}

const SamplingRegistration registered({.family = &TransposeKnobs::family(),
                                       .coarseClass = classOf});

}  // namespace
}  // namespace weft::emulate
