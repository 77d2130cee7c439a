// Which configurations of gemm-sm90 tests draw one of each of.
#include "tests/emulate/Sampling.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"

#include <fmt/format.h>

namespace weft::emulate {
namespace {

std::string classOf(const Knobs &any) {
  const auto &knobs = any.get<Sm90GemmKnobs>();
  return fmt::format("{} tile {}x{}", nameOf(knobs.schedule), knobs.tileM, knobs.tileN);
}

const SamplingRegistration registered({.family = &Sm90GemmKnobs::family(),
                                       .coarseClass = classOf,
                                       .isEmulated = false});

}  // namespace
}  // namespace weft::emulate
