// Tiles, waves and traffic of a library GEMM; see LibraryCost.h.
#include "codegen/families/library/LibraryCost.h"

#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "passes/configure/AnalyticConstants.h"

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

bool isAligned(const LibraryGemm &gemm) {
  const StridedBatchedGemm &shape = gemm.shape;
  const auto [a, b, c] = gemm.types();
  return isAligned({shape.strideAm, shape.strideAk, shape.batchStrideA}, sizeOf(a)) &&
         isAligned({shape.strideBk, shape.strideBn, shape.batchStrideB}, sizeOf(b)) &&
         isAligned({shape.strideCm, shape.strideCn, shape.batchStrideC}, sizeOf(c));
}

Units unitsOf(const LibraryGemm &gemm, const LibraryKnobs &knobs, const Device &device) {
  Units units;
  if (const auto peak = device.tensorFlops.find(gemm.types().a); peak != device.tensorFlops.end()) {
    units = {.flops = peak->second, .busyIntensity = analytic::libraryTensorIntensity};
    if (!isAligned(gemm))
      units = {.flops = peak->second,
               .busyIntensity = analytic::libraryUnalignedIntensity,
               .mostEfficient = analytic::libraryUnalignedShare};
  } else {
    units = {.flops = device.fmaFlops,
             .busyIntensity = analytic::libraryFmaIntensity,
             .mostEfficient = analytic::libraryFmaShare};
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
  const double blockSeconds =
      2 * tile.m * tile.n * depth / (units.flops / device.multiprocessors * units.efficiency(tile));
  const double partialBytes =
      splitK == 1 ? 0 : 2 * sizeof(float) * batch * m * n * static_cast<double>(splitK);
  return waves * blockSeconds + partialBytes / device.copyBandwidth;
}

double bestSeconds(const StridedBatchedGemm &shape, const Units &units, const Device &device) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tile &tile : tiles)
    for (int64_t splitK = 1; splitK == 1 || shape.k / splitK >= analytic::libraryShortestSplit;
         splitK *= 2)
      best = std::min(best, secondsOf(shape, tile, splitK, units, device));
  return best;
}

}  // namespace

namespace {

/// Bytes that the GEMM alone moves: A, B and D once.
double gemmBytes(const LibraryGemm &gemm) {
  const auto batch = [&](int64_t stride) {
    return stride == 0 ? 1.0 : static_cast<double>(gemm.shape.batch);
  };
  const auto m = static_cast<double>(gemm.shape.m), n = static_cast<double>(gemm.shape.n),
             k = static_cast<double>(gemm.shape.k);
  const auto [a, b, c] = gemm.types();
  return static_cast<double>(sizeOf(a)) * batch(gemm.shape.batchStrideA) * m * k +
         static_cast<double>(sizeOf(b)) * batch(gemm.shape.batchStrideB) * k * n +
         static_cast<double>(sizeOf(c)) * static_cast<double>(gemm.shape.batch) * m * n;
}

/// Seconds of a separate kernel after the GEMM in place of the epilogue: it reads D again, and
/// moves everything else that the fused kernel moves.
double secondsBehind(const Kernel &kernel, const LibraryGemm &gemm, const Device &device) {
  const double result = static_cast<double>(sizeOf(gemm.dtype)) *
                        static_cast<double>(gemm.shape.batch) * static_cast<double>(gemm.shape.m) *
                        static_cast<double>(gemm.shape.n);
  const double others = static_cast<double>(kernel.necessaryBytes()) - gemmBytes(gemm);
  return device.launchSeconds + (2 * result + std::max(0.0, others)) / device.copyBandwidth;
}

}  // namespace

Cost libraryCost(const Kernel &kernel, const Configuration &configuration,
                 const LibraryKnobs &knobs, const Device &device) {
  const LibraryGemm gemm = libraryGemm(kernel, configuration);
  const Units units = unitsOf(gemm, knobs, device);
  const double computeSeconds = bestSeconds(gemm.shape, units, device);
  const auto necessary = static_cast<double>(kernel.necessaryBytes());
  const double memorySeconds =
      (gemm.isPlain() ? necessary : gemmBytes(gemm)) / device.copyBandwidth;
  const double exposed =
      std::min(1.0, analytic::libraryDepthStep / static_cast<double>(gemm.shape.k));
  const double busySeconds = std::max(memorySeconds, computeSeconds);
  Cost cost{.seconds = device.launchSeconds + busySeconds +
                       exposed * std::min(memorySeconds, computeSeconds),
            .bytesMoved = static_cast<int64_t>(necessary),
            .bound = Bound::memory};
  if (!gemm.isPlain())
    cost.seconds = analytic::libraryEpilogueUntriedFactor *
                   (cost.seconds + secondsBehind(kernel, gemm, device));
  if (device.launchSeconds > busySeconds) cost.bound = Bound::launch;
  else if (computeSeconds > memorySeconds)
    cost.bound = device.tensorFlops.contains(gemm.types().a) ? Bound::tensor : Bound::fma;
  return cost;
}

}  // namespace weft
