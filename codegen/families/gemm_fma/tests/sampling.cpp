// Which configurations of gemm-fma tests draw one of each of.
#include "tests/emulate/Sampling.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"

#include <fmt/format.h>

namespace weft::emulate {
namespace {

std::string classOf(const Knobs &any) {
  const auto &knobs = any.get<FmaGemmKnobs>();
  return fmt::format("contraction {}x{}x{} by {}x{} by {}", knobs.tileM, knobs.tileN, knobs.tileK,
                     knobs.threadM, knobs.threadN, knobs.kGroups);
}

const SamplingRegistration registered({.family = &FmaGemmKnobs::family(), .coarseClass = classOf});

}  // namespace
}  // namespace weft::emulate
