// Tiles, waves and traffic of a library GEMM; see LibraryCost.h.
#include "codegen/families/library/LibraryCost.h"

#include "codegen/families/contraction/ContractionCostConstants.h"
#include "codegen/families/library/LibraryCostConstants.h"
#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/ContractionRegion.h"
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/Margins.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft {
namespace {

struct Tile {
  double m, n;
};
constexpr Tile tiles[] = {{128, 256}, {256, 128}, {128, 192}, {192, 128}, {128, 128},
                          {64, 256},  {256, 64},  {128, 64},  {64, 128},  {64, 64},
                          {64, 32},   {32, 64},   {32, 32}};

/// The units that compute, and the share of their peak that a tile reaches.
struct Units {
  double flops = 0;          ///< of all multiprocessors
  double busyIntensity = 0;  ///< m n / (m + n) of the smallest tile that keeps them busy
  double mostEfficient = 1;
  bool splitBatches = true;  ///< whether k of several batch elements may be split

  double efficiency(const Tile &tile) const {
    return mostEfficient * std::min(1.0, tile.m * tile.n / (tile.m + tile.n) / busyIntensity);
  }
};

/// The strides between vectors of an operand, which decide the alignment of all its rows; the unit
/// stride itself is no pitch.
bool isAligned(std::initializer_list<int64_t> strides, int64_t elementBytes) {
  return std::all_of(strides.begin(), strides.end(), [&](int64_t stride) {
    return stride <= 1 || stride * elementBytes % analytic::libraryAlignment == 0;
  });
}

/// Whether the rows of A, B and C, along whichever axis they are contiguous, are whole vectors: of
/// 35 x 64 x 101 x 2222 with rows of 101 elements at a pitch of 104 the first candidate took 68 us
/// (H200), seven times the price of whole vectors.
bool hasWholeVectors(const LibraryGemm &gemm) {
  const StridedBatchedGemm &shape = gemm.shape;
  const auto [a, b, c] = gemm.types();
  const int64_t rowOfA = shape.strideAk == 1 ? shape.k : shape.m,
                rowOfB = shape.strideBk == 1 ? shape.k : shape.n,
                rowOfC = shape.strideCn == 1 ? shape.n : shape.m;
  return rowOfA * sizeOf(a) % analytic::libraryAlignment == 0 &&
         rowOfB * sizeOf(b) % analytic::libraryAlignment == 0 &&
         rowOfC * sizeOf(c) % analytic::libraryAlignment == 0;
}

bool isAligned(const LibraryGemm &gemm) {
  const StridedBatchedGemm &shape = gemm.shape;
  const auto [a, b, c] = gemm.types();
  return hasWholeVectors(gemm) &&
         isAligned({shape.strideAm, shape.strideAk, shape.batchStrideA}, sizeOf(a)) &&
         isAligned({shape.strideBk, shape.strideBn, shape.batchStrideB}, sizeOf(b)) &&
         isAligned({shape.strideCm, shape.strideCn, shape.batchStrideC}, sizeOf(c));
}

Units unitsOf(const LibraryGemm &gemm, const LibraryKnobs &knobs, const Device &device) {
  Units units;
  if (const auto peak = device.tensorFlops.find(gemm.types().a); peak != device.tensorFlops.end()) {
    units = {.flops = peak->second,
             .busyIntensity = analytic::libraryTensorIntensity,
             .mostEfficient = analytic::libraryMostEfficiency};
    if (!isAligned(gemm))
      units = {.flops = peak->second,
               .busyIntensity = analytic::libraryUnalignedIntensity,
               .mostEfficient = analytic::libraryUnalignedShare};
  } else {
    units = {.flops = device.fmaFlops,
             .busyIntensity = analytic::libraryFmaIntensity,
             .mostEfficient = analytic::libraryFmaShare,
             .splitBatches = knobs.algorithm >= 0 || gemm.shape.batch == 1 ||
                             gemm.shape.k < analytic::libraryFmaBatchedDepth};
  }
  if (knobs.algorithm < 0) units.flops *= analytic::libraryFirstCandidateShare;
  return units;
}

/// Seconds of one tile and split of k: whole waves of blocks, and the partial sums.
double secondsOf(const StridedBatchedGemm &shape, const Tile &tile, int64_t splitK,
                 const Units &units, const Device &device) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             batch = static_cast<double>(shape.batch);
  const double blocks =
      batch * std::ceil(m / tile.m) * std::ceil(n / tile.n) * static_cast<double>(splitK);
  const double depth = std::ceil(static_cast<double>(shape.k) / static_cast<double>(splitK) /
                                 analytic::libraryDepthUnit) *
                       analytic::libraryDepthUnit;
  const double waves = std::ceil(blocks / device.multiprocessors);
  const bool isAtPeak = !units.splitBatches && waves == 1;
  const double flops = isAtPeak ? device.fmaFlops : units.flops * units.efficiency(tile);
  const double blockSeconds = 2 * tile.m * tile.n * depth / (flops / device.multiprocessors);
  const double stored = waves * (blockSeconds + analytic::libraryWaveSeconds);
  if (splitK == 1) return stored;
  const double partialBytes = 2 * sizeof(float) * batch * m * n * static_cast<double>(splitK);
  return stored + partialBytes / device.copyBandwidth + analytic::librarySplitSeconds;
}

double bestSeconds(const StridedBatchedGemm &shape, const Units &units, const Device &device) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tile &tile : tiles) {
    if (!units.splitBatches && tile.m * tile.n < analytic::libraryFmaBatchedTile) continue;
    const int64_t shortest = units.splitBatches ? analytic::libraryShortestSplit : shape.k;
    for (int64_t splitK = 1; splitK == 1 || shape.k / splitK >= shortest; splitK *= 2)
      best = std::min(best, secondsOf(shape, tile, splitK, units, device));
  }
  return best;
}

/// What an epilogue makes of the time, by the operands of the result's shape that it reads.
double epilogueFactor(const Kernel &kernel) {
  double factor = analytic::libraryEpilogueFactor;
  if (const auto region = contractionRegion(kernel))
    for (const EpilogueInput &input : region->inputs)
      if (input.role == EpilogueRole::result) factor += analytic::libraryEpilogueOperandShare;
  return factor;
}

}  // namespace

Cost libraryCost(const Kernel &kernel, const Configuration &configuration,
                 const LibraryKnobs &knobs, const Device &device) {
  const LibraryGemm gemm = libraryGemm(kernel, configuration);
  const Units units = unitsOf(gemm, knobs, device);
  const double computeSeconds = bestSeconds(gemm.shape, units, device);
  const auto necessary = static_cast<double>(kernel.necessaryBytes());
  const double memorySeconds = necessary / device.copyBandwidth;
  const double exposed =
      analytic::libraryExposedShare *
      std::min(1.0, analytic::libraryDepthStep / static_cast<double>(gemm.shape.k));
  const double busySeconds = std::max(memorySeconds, computeSeconds);
  Cost cost{.seconds = device.launchSeconds + analytic::libraryStartSeconds + busySeconds +
                       exposed * std::min(memorySeconds, computeSeconds),
            .bytesMoved = static_cast<int64_t>(necessary),
            .bound = Bound::memory};
  if (!gemm.isPlain()) cost.seconds *= epilogueFactor(kernel);
  if (device.launchSeconds > busySeconds) cost.bound = Bound::launch;
  else if (computeSeconds > memorySeconds)
    cost.bound = device.tensorFlops.contains(gemm.types().a) ? Bound::tensor : Bound::fma;
  return margins::added(cost, gemm.isPlain() ? margins::library : margins::libraryEpilogue);
}

}  // namespace weft
