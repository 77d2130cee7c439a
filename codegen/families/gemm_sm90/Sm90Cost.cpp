// Tiles and waves of gemm-sm90; see Sm90Cost.h.
#include "codegen/families/gemm_sm90/Sm90Cost.h"

#include "codegen/families/contraction/PrologueCost.h"
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/Error.h"
#include "passes/configure/AnalyticConstants.h"

#include <algorithm>
#include <cmath>

namespace weft {

namespace {

/// A CTA of a cluster receives the accumulators of the others for its subtiles.
double reductionSeconds(const Sm90GemmKnobs &knobs) {
  if (knobs.splitK == 1) return 0;
  if (knobs.schedule == Sm90Schedule::singleConsumer)  // the first block adds all
    return analytic::splitKReductionSeconds + 4.0 * knobs.tileM * knobs.tileN * (knobs.splitK - 1) /
                                                  analytic::splitKReductionBandwidth;
  const double received = 4.0 * knobs.tileM * knobs.tileN * (knobs.splitK - 1) / knobs.splitK;
  return analytic::splitKReductionSeconds + received / analytic::splitKReductionBandwidth;
}

/// Of 64 rows whatever the tile has; a GEMM of fewer columns takes as long as that of the fewest
/// that keep the tensor cores busy.
double singleConsumerSeconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs,
                             const Device &device) {
  const double instructionRows = 64, columns = std::max<double>(singleConsumerSides(knobs).columns,
                                                                analytic::singleConsumerColumns);
  const double waves = std::ceil(double(sm90Blocks(gemm, knobs)) / device.multiprocessors);
  const double depth = std::ceil(double(sm90KTiles(gemm)) / knobs.splitK) * double(gemm.depth());
  const double flops = device.tensorFlops.at(gemm.operandType) / device.multiprocessors *
                       analytic::singleConsumerEfficiency;
  return waves * 2 * instructionRows * columns * depth / flops + reductionSeconds(knobs);
}

/// Of the k-tiles of a tile, where some rows arrive slowly enough to be waited for.
double loadSeconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs, double depth,
                   const Device &device) {
  const int64_t elementBytes = sizeOf(gemm.operandType);
  const bool isSlowA = gemm.a.straddlesSectors(elementBytes),
             isSlowB = gemm.b.straddlesSectors(elementBytes);
  if (!isSlowA && !isSlowB) return 0;
  const auto bytes = [&](double rows, bool isSlow) {
    return rows * depth * double(elementBytes) * (isSlow ? analytic::sm90StraddlingFactor : 1);
  };
  const double loaded =
      bytes(knobs.tileM, isSlowA) + bytes(double(knobs.tileN) / knobs.multicastB, isSlowB);
  const double flopsOfByte = analytic::sm90FlopsOfLoadedByte * sizeOf(DType::f16) /
                             double(elementBytes);  // wider elements are multiplied slower
  return loaded * flopsOfByte / (device.tensorFlops.at(gemm.operandType) / device.multiprocessors);
}

/// Partial sums that all tiles write and the last-arriving ones read; 0 without epilogue
/// reductions.
double partialBytes(const Kernel &kernel, const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  if (std::ranges::none_of(kernel.body, [](const BodyOp &op) { return op.kind == OpKind::reduce; }))
    return 0;
  return 2 * double(sm90PartialBytes(contractionRegion(kernel).region.value(), gemm, knobs));
}

}  // namespace

double sm90TensorSeconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs,
                         const Device &device) {
  if (knobs.schedule == Sm90Schedule::singleConsumer)
    return singleConsumerSeconds(gemm, knobs, device);
  const double m = knobs.tileM, n = knobs.tileN;
  const double waves = std::ceil(double(sm90Tiles(gemm, knobs) * knobs.splitK) /
                                 std::min(knobs.blocks, device.multiprocessors));
  const double depth = std::ceil(double(sm90KTiles(gemm)) / knobs.splitK) * double(gemm.depth());
  double efficiency = std::min(
      1.0, analytic::sm90LeastEfficiency + analytic::sm90EfficiencyPerIntensity * m * n / (m + n));
  if (!gemm.a.usesTma || !gemm.b.usesTma) efficiency *= analytic::sm90GuardedShare;
  const double gemmSeconds =
      2 * m * n * depth /
      (device.tensorFlops.at(gemm.operandType) / device.multiprocessors * efficiency);
  const double tileSeconds = std::max(gemmSeconds, loadSeconds(gemm, knobs, depth, device));
  const double storeSeconds = analytic::sm90StoreSeconds * m * n / (128.0 * 256.0);
  if (knobs.streamK != 0) {
    const double runs = double(sm90Tiles(gemm, knobs)) /
                        std::min(knobs.blocks, device.multiprocessors),
                 left = 4 * m * n / analytic::splitKReductionBandwidth;
    return runs * (tileSeconds + storeSeconds) + analytic::streamKSeconds + 2 * left;
  }
  const bool isPingPong = knobs.schedule == Sm90Schedule::pingPong;
  return waves * tileSeconds + (isPingPong ? 0.5 : waves) * storeSeconds / knobs.splitK +
         reductionSeconds(knobs);
}

Cost sm90Cost(const Kernel &kernel, const Configuration &configuration, const Sm90GemmKnobs &knobs,
              const Device &device) {
  const GemmProblemOrRejection answer = wgmmaProblem(kernel, configuration);
  if (!answer.gemm) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.rejection);
  const double multiplySeconds = sm90TensorSeconds(*answer.gemm, knobs, device);
  // Slices are made while others are multiplied.
  const double waves = std::ceil(double(sm90Tiles(*answer.gemm, knobs)) /
                                 std::min(knobs.blocks, device.multiprocessors));
  const double depth = double(sm90KTiles(*answer.gemm) * answer.gemm->depth());
  const double transform = waves * transformSeconds(kernel, *answer.gemm, knobs.tileM, knobs.tileN,
                                                    depth, analytic::sm90TransformShare, device);
  const double tensorSeconds = std::max(multiplySeconds, transform);
  const double partial = partialBytes(kernel, *answer.gemm, knobs),
               necessary = double(kernel.necessaryBytes()) + partial;
  const double busy =
      double(std::min<int64_t>(sm90Blocks(*answer.gemm, knobs), device.multiprocessors)) /
      device.multiprocessors;
  const double memorySeconds =
      necessary / (device.copyBandwidth * std::min(1.0, analytic::sm90ShareOfMemory * busy));
  const double exposed = analytic::sm90ExposedShare *
                         std::min(1.0, analytic::libraryDepthStep / double(answer.gemm->k));
  const double busySeconds =
      std::max(memorySeconds, tensorSeconds) + exposed * std::min(memorySeconds, tensorSeconds);
  Cost cost{.seconds = device.launchSeconds + analytic::sm90StartSeconds + busySeconds,
            .bytesMoved = int64_t(necessary),
            .bound = memorySeconds > tensorSeconds ? Bound::memory : Bound::tensor};
  if (partial > 0)
    cost.seconds =
        analytic::epilogueReductionUnmeasured * (cost.seconds + analytic::epilogueReductionSeconds);
  cost.seconds *= unmeasuredPrologue(*answer.gemm);
  if (knobs.splitK > 1 || knobs.streamK != 0) cost.seconds *= analytic::splitKUnmeasured;
  else if (knobs.schedule == Sm90Schedule::singleConsumer)
    cost.seconds *= analytic::singleConsumerUnmeasured;
  if (answer.gemm->hasSeveralStrides()) cost.seconds += analytic::sm90StridesSeconds;
  if (device.launchSeconds > busySeconds) cost.bound = Bound::launch;
  return cost;
}

}  // namespace weft
