// Partial sums by tiles; see HopperSums.h.
#include "kernel/HopperSums.h"

#include "kernel/ColumnScratch.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {

bool isOfRows(const EpilogueSum &sum, const HopperProduct &product) {
  return (sum.role == EpilogueRole::n) == product.isSwapped;
}

int64_t hopperPartialBytes(const ContractionRegion &region, const HopperProduct &product,
                           const HopperContractionKnobs &knobs) {
  constexpr int64_t elementBytes = 4;
  const int64_t tilesM = (product.m + knobs.tileM - 1) / knobs.tileM,
                tilesN = (product.n + knobs.tileN - 1) / knobs.tileN;
  const int64_t consumersOfTile = knobs.schedule == HopperSchedule::pingPong ? 1 : 2;
  int64_t bytes = 0;
  for (const EpilogueSum &sum : region.sums)
    bytes +=
        elementBytes * (isOfRows(sum, product) ? tilesN * tilesM * knobs.tileM
                                               : tilesM * consumersOfTile * tilesN * knobs.tileN);
  return bytes;
}

std::string hopperSumsRefusal(const ContractionRegion &region, const HopperProduct &product,
                              const HopperContractionKnobs &knobs) {
  if (region.sums.empty()) return "";
  constexpr auto mostSums = 2;
  for (const EpilogueRole role : {EpilogueRole::m, EpilogueRole::n})
    if (const auto count = std::ranges::count(region.sums, role, &EpilogueSum::role);
        count > mostSums)
      return fmt::format("{} sums along group {}; {} are taken", count, nameOf(role), mostSums);
  if (knobs.splits > 1)
    return fmt::format("k over {} blocks beside sums of the result; they take whole tiles",
                       knobs.splits);
  if (const int64_t bytes = hopperPartialBytes(region, product, knobs); bytes > gridPartialsLimit)
    return fmt::format("{} bytes of partial sums; a kernel keeps {} for itself: take larger tiles",
                       bytes, gridPartialsLimit);
  return "";
}

}  // namespace weft
