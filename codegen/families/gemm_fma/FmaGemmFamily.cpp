// Plain contraction family: one einsum of two operands by tiled FMA, under every layout that makes
// it one batched strided GEMM. The last resort: it is taken where no library GEMM is.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "passes/configure/Family.h"

namespace weft {
namespace {

/// Blocks of plain FMA code: tile m x n x k, elements a thread.
constexpr FmaGemmKnobs tiles[] = {
    {.tileM = 32, .tileN = 32, .tileK = 16, .threadM = 2, .threadN = 2},
    {.tileM = 64, .tileN = 64, .tileK = 16, .threadM = 4, .threadN = 4},
    {.tileM = 128, .tileN = 64, .tileK = 16, .threadM = 8, .threadN = 4},
    {.tileM = 64, .tileN = 128, .tileK = 16, .threadM = 4, .threadN = 8},
    {.tileM = 128, .tileN = 128, .tileK = 16, .threadM = 8, .threadN = 8},
};

}  // namespace

Expected<ConfigurationSpace, Reason> fmaGemmSpace(const Kernel &kernel, const Device &) {
  if (std::string reason = contractionRejection(kernel); !reason.empty())
    return rejected(std::move(reason));
  return ConfigurationSpace{.family = &fmaGemmFamily,
                            .tuples = contractionTuples(kernel),
                            .knobs = {std::begin(tiles), std::end(tiles)}};
}

}  // namespace weft
