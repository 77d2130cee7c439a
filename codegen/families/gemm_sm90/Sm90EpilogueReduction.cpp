// Partial sums by tiles; see Sm90EpilogueReduction.h.
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"

#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "passes/configure/Family.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {

bool isOfRows(const EpilogueReduction &sum, const GemmProblem &gemm) {
  return (sum.role == EpilogueRole::n) == gemm.isSwapped;
}

int64_t sm90PartialBytes(const ContractionRegion &region, const GemmProblem &gemm,
                         const Sm90GemmKnobs &knobs) {
  constexpr int64_t elementBytes = 4;
  const int64_t tilesM = (gemm.m + knobs.tileM - 1) / knobs.tileM,
                tilesN = (gemm.n + knobs.tileN - 1) / knobs.tileN;
  const int64_t consumersOfTile = knobs.schedule == Sm90Schedule::pingPong ? 1 : 2;
  int64_t bytes = 0;
  for (const EpilogueReduction &sum : region.reductions)
    bytes += elementBytes * (isOfRows(sum, gemm) ? tilesN * tilesM * knobs.tileM
                                                 : tilesM * consumersOfTile * tilesN * knobs.tileN);
  return bytes;
}

std::string sm90ReductionRejection(const ContractionRegion &region, const GemmProblem &gemm,
                                   const Sm90GemmKnobs &knobs) {
  if (region.reductions.empty()) return "";
  constexpr auto mostReductions = 2;
  for (const EpilogueRole role : {EpilogueRole::m, EpilogueRole::n})
    if (const auto count = std::ranges::count(region.reductions, role, &EpilogueReduction::role);
        count > mostReductions)
      return fmt::format("{} sums along group {}; {} are taken", count, nameOf(role),
                         mostReductions);
  if (knobs.splitK > 1)
    return fmt::format("k over {} blocks beside sums of the result; they take whole tiles",
                       knobs.splitK);
  if (const int64_t bytes = sm90PartialBytes(region, gemm, knobs); bytes > gridPartialsLimit)
    return fmt::format("{} bytes of partial sums; a kernel keeps {} for itself: take larger tiles",
                       bytes, gridPartialsLimit);
  return "";
}

}  // namespace weft
