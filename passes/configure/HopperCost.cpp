// Tiles and waves of the skeleton kernel; see HopperCost.h.
#include "passes/configure/HopperCost.h"

#include "kernel/Error.h"
#include "kernel/HopperSums.h"
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/PrologueCost.h"

#include <algorithm>
#include <cmath>

namespace weft {

namespace {

/// A block of a cluster receives the sums of the others for its part of the tile.
double joinSeconds(const HopperContractionKnobs &knobs) {
  if (knobs.splits == 1) return 0;
  if (knobs.schedule == HopperSchedule::narrow)  // the first block adds all
    return analytic::hopperJoinSeconds +
           4.0 * knobs.tileM * knobs.tileN * (knobs.splits - 1) / analytic::hopperJoinBandwidth;
  const double received = 4.0 * knobs.tileM * knobs.tileN * (knobs.splits - 1) / knobs.splits;
  return analytic::hopperJoinSeconds + received / analytic::hopperJoinBandwidth;
}

/// Of 64 rows whatever the tile has; a product of fewer columns takes as long as that of the fewest
/// that keep the tensor cores busy.
double narrowSeconds(const HopperProduct &product, const HopperContractionKnobs &knobs,
                     const Device &device) {
  const double instructionRows = 64, columns = std::max<double>(narrowSides(knobs).columns,
                                                                analytic::hopperNarrowColumns);
  const double waves = std::ceil(double(hopperBlocks(product, knobs)) / device.multiprocessors);
  const double depth =
      std::ceil(double(hopperSlices(product)) / knobs.splits) * double(product.depth());
  const double flops = device.tensorFlops.at(product.operandType) / device.multiprocessors *
                       analytic::hopperNarrowEfficiency;
  return waves * 2 * instructionRows * columns * depth / flops + joinSeconds(knobs);
}

/// Of the slices of a tile, where some rows arrive slowly enough to be waited for.
double loadSeconds(const HopperProduct &product, const HopperContractionKnobs &knobs, double depth,
                   const Device &device) {
  const int64_t elementBytes = sizeOf(product.operandType);
  const bool isSlowA = product.a.straddlesSectors(elementBytes),
             isSlowB = product.b.straddlesSectors(elementBytes);
  if (!isSlowA && !isSlowB) return 0;
  const auto bytes = [&](double rows, bool isSlow) {
    return rows * depth * double(elementBytes) * (isSlow ? analytic::hopperStraddlingFactor : 1);
  };
  const double loaded =
      bytes(knobs.tileM, isSlowA) + bytes(double(knobs.tileN) / knobs.sharers, isSlowB);
  const double flopsOfByte = analytic::hopperFlopsOfLoadedByte * sizeOf(DType::f16) /
                             double(elementBytes);  // wider elements are multiplied slower
  return loaded * flopsOfByte /
         (device.tensorFlops.at(product.operandType) / device.multiprocessors);
}

/// Partial sums that all tiles leave and the last ones read again; 0 where an epilogue has no sums.
double partialBytes(const Kernel &kernel, const HopperProduct &product,
                    const HopperContractionKnobs &knobs) {
  if (std::ranges::none_of(kernel.body, [](const BodyOp &op) { return op.name == "reduce"; }))
    return 0;
  return 2 * double(hopperPartialBytes(contractionRegion(kernel).region.value(), product, knobs));
}

}  // namespace

double hopperTensorSeconds(const HopperProduct &product, const HopperContractionKnobs &knobs,
                           const Device &device) {
  if (knobs.schedule == HopperSchedule::narrow) return narrowSeconds(product, knobs, device);
  const double m = knobs.tileM, n = knobs.tileN;
  const double waves = std::ceil(double(hopperTiles(product, knobs) * knobs.splits) /
                                 std::min(knobs.blocks, device.multiprocessors));
  const double depth =
      std::ceil(double(hopperSlices(product)) / knobs.splits) * double(product.depth());
  double efficiency = std::min(1.0, analytic::hopperLeastEfficiency +
                                        analytic::hopperEfficiencyPerIntensity * m * n / (m + n));
  if (!product.a.isByEngine || !product.b.isByEngine) efficiency *= analytic::hopperGuardedShare;
  const double productSeconds =
      2 * m * n * depth /
      (device.tensorFlops.at(product.operandType) / device.multiprocessors * efficiency);
  const double tileSeconds = std::max(productSeconds, loadSeconds(product, knobs, depth, device));
  const double storeSeconds = analytic::hopperStoreSeconds * m * n / (128.0 * 256.0);
  if (knobs.streams != 0) {
    const double runs = double(hopperTiles(product, knobs)) /
                        std::min(knobs.blocks, device.multiprocessors),
                 left = 4 * m * n / analytic::hopperJoinBandwidth;
    return runs * (tileSeconds + storeSeconds) + analytic::hopperStreamSeconds + 2 * left;
  }
  const bool isPingPong = knobs.schedule == HopperSchedule::pingPong;
  return waves * tileSeconds + (isPingPong ? 0.5 : waves) * storeSeconds / knobs.splits +
         joinSeconds(knobs);
}

Cost hopperCost(const Kernel &kernel, const Configuration &configuration,
                const HopperContractionKnobs &knobs, const Device &device) {
  const HopperProductAnswer answer = hopperProduct(kernel, configuration);
  if (!answer.product) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.refusal);
  const double multiplySeconds = hopperTensorSeconds(*answer.product, knobs, device);
  // Slices are made while others are multiplied.
  const double waves = std::ceil(double(hopperTiles(*answer.product, knobs)) /
                                 std::min(knobs.blocks, device.multiprocessors));
  const double depth = double(hopperSlices(*answer.product) * answer.product->depth());
  const double making = waves * makingSeconds(kernel, *answer.product, knobs.tileM, knobs.tileN,
                                              depth, analytic::hopperMakingShare, device);
  const double tensorSeconds = std::max(multiplySeconds, making);
  const double partial = partialBytes(kernel, *answer.product, knobs),
               necessary = double(kernel.necessaryBytes()) + partial;
  const double busy =
      double(std::min<int64_t>(hopperBlocks(*answer.product, knobs), device.multiprocessors)) /
      device.multiprocessors;
  const double memorySeconds =
      necessary / (device.copyBandwidth * std::min(1.0, analytic::hopperShareOfMemory * busy));
  const double exposed = analytic::hopperExposedShare *
                         std::min(1.0, analytic::libraryDepthStep / double(answer.product->k));
  const double busySeconds =
      std::max(memorySeconds, tensorSeconds) + exposed * std::min(memorySeconds, tensorSeconds);
  Cost cost{.seconds = device.launchSeconds + analytic::hopperStartSeconds + busySeconds,
            .bytesMoved = int64_t(necessary),
            .bound = memorySeconds > tensorSeconds ? Bound::memory : Bound::tensor};
  if (partial > 0)
    cost.seconds = analytic::hopperSumsUnmeasured * (cost.seconds + analytic::hopperSumSeconds);
  cost.seconds *= unmeasuredPrologue(*answer.product);
  if (knobs.splits > 1 || knobs.streams != 0) cost.seconds *= analytic::hopperSplitUnmeasured;
  else if (knobs.schedule == HopperSchedule::narrow)
    cost.seconds *= analytic::hopperNarrowUnmeasured;
  if (answer.product->hasSeveralStrides()) cost.seconds += analytic::hopperStridesSeconds;
  if (device.launchSeconds > busySeconds) cost.bound = Bound::launch;
  return cost;
}

}  // namespace weft
