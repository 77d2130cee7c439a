// Which configurations of gemm-sm80 tests draw one of each of.
#include "tests/emulate/Sampling.h"
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "kernel/ContractionPrologue.h"

#include <fmt/format.h>

namespace weft::emulate {
namespace {

std::string classOf(const Knobs &any) {
  const auto &knobs = any.get<Sm80GemmKnobs>();
  return fmt::format("mma.sync tile {}x{}x{} warps {}x{}", knobs.tileM, knobs.tileN, knobs.tileK,
                     knobs.warpsM, knobs.warpsN);
}

bool takesViews(const Kernel &kernel, const Configuration &views) {
  const auto prologue = contractionPrologue(kernel).value_or(std::nullopt);
  return mmaSyncProblem(kernel, views) &&
         (!prologue || prologueLayoutRejection(kernel, views, *prologue).empty());
}

const SamplingRegistration registered({.family = &Sm80GemmKnobs::family(),
                                       .coarseClass = classOf,
                                       .isOnTensorCores = true,
                                       .takesViews = takesViews,
                                       .otherDevice = "a100"});

}  // namespace
}  // namespace weft::emulate
