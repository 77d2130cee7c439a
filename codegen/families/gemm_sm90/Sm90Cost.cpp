// Tiles and waves of gemm-sm90; see Sm90Cost.h.
#include "codegen/families/gemm_sm90/Sm90Cost.h"

#include "codegen/families/contraction/ContractionCostConstants.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/contraction/PrologueCost.h"
#include "codegen/families/gemm_sm90/Sm90CostConstants.h"
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/Margins.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft {

namespace {

/// A CTA of a cluster receives the accumulators of the others for its subtiles; of single-consumer
/// tiles the first one receives all.
double reductionSeconds(const Sm90GemmKnobs &knobs) {
  if (knobs.splitK == 1) return 0;
  const double sharing = knobs.schedule == Sm90Schedule::singleConsumer ? 1 : knobs.splitK;
  const double received = 4.0 * knobs.tileM * knobs.tileN * (knobs.splitK - 1) / sharing;
  return analytic::splitKStepSeconds * std::log2(knobs.splitK) +
         received / analytic::splitKReductionBandwidth;
}

/// CTAs that run at one time. Clusters lie within a group of multiprocessors and leave some of it
/// without work.
double concurrentBlocks(const Sm90GemmKnobs &knobs, const Device &device) {
  const double all = device.multiprocessors;
  switch (knobs.splitK) {
    case 1: return std::min<double>(knobs.blocks, all);
    case 2: return all;
    case 4: return all * analytic::shareOfClustersOfFour;
    default: return all * analytic::shareOfClustersOfEight;
  }
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
  if (!gemm.a.straddlesLines(elementBytes) && !gemm.b.straddlesLines(elementBytes)) return 0;
  const auto bytes = [&](double rows, const GemmOperand &operand) {
    const int64_t alignment = operand.rowAlignment(elementBytes);
    const double factor = alignment >= 128                     ? 1
                          : alignment >= analytic::sectorBytes ? analytic::sm90LineFactor
                                                               : analytic::sm90SectorFactor;
    return rows * depth * double(elementBytes) * factor;
  };
  const double loaded =
      bytes(knobs.tileM, gemm.a) + bytes(double(knobs.tileN) / knobs.multicastB, gemm.b);
  const double flopsOfByte = analytic::sm90FlopsOfLoadedByte * sizeOf(DType::f16) /
                             double(elementBytes);  // wider elements are multiplied slower
  return loaded * flopsOfByte /
         (device.tensorFlops.at(gemm.operandType) / device.multiprocessors *
          analytic::sm90LoadingClock);
}

/// Of all k-tiles from L2, but for those that arrive before the first one is needed. Blocks that
/// share k follow one another, so that fewer of them share k-tiles of B.
double l2Seconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs, double depth, double waves) {
  const double tilesAlongM = std::ceil(double(gemm.m) / knobs.tileM),
               sharing = std::max(std::min<double>(knobs.groupM, tilesAlongM) / knobs.splitK, 1.0),
               elementBytes = double(sizeOf(gemm.operandType)),
               bytes = (knobs.tileM + double(knobs.tileN) / sharing) * depth * elementBytes,
               kTiles = waves * depth / double(gemm.depth());
  return double(sm90Tiles(gemm, knobs) * knobs.splitK) * bytes *
         std::max(0.0, 1 - knobs.stages / kTiles) / analytic::sm90L2Bandwidth;
}

/// Partial sums that all tiles write and the last-arriving ones read; 0 without epilogue
/// reductions.
double partialBytes(const Kernel &kernel, const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  if (std::ranges::none_of(kernel.body, [](const BodyOp &op) { return op.kind == OpKind::reduce; }))
    return 0;
  return 2 * double(sm90PartialBytes(contractionRegion(kernel).value(), gemm, knobs));
}

}  // namespace

double sm90ElementSeconds(const Kernel &kernel, const ContractionRegion &region) {
  double seconds = analytic::epilogueSeconds;
  const double elements = double(kernel.elements(region.c));
  for (const OpId op : region.elementwiseOps()) {
    if (region.rotary && op == region.rotary->op) {
      const double share = region.rotary->among < 0
                               ? 1
                               : double(region.rotary->end - region.rotary->begin) /
                                     double(kernel.axes[size_t(region.rotary->among)].extent);
      seconds += analytic::epilogueRotarySeconds * share * double(region.rotary->turned) /
                 double(region.rotary->extent);
      continue;
    }
    const bool isFree = isTokenMask(kernel.body[op]) && areUnusedUnread(kernel);  // no instruction
    if (!isFree) seconds += analytic::epilogueFlopSeconds * kernel.body[op].flop / elements;
  }
  bool isFirst = true;
  for (const EpilogueInput &input : region.inputs)
    if (input.role == EpilogueRole::result)
      seconds += std::exchange(isFirst, false) ? analytic::epilogueOperandSeconds
                                               : analytic::epilogueFurtherOperandSeconds;
  if (const size_t whole = region.wholeOutputs(kernel); whole > 1)
    seconds += analytic::epilogueResultSeconds * double(whole - 1);
  seconds += analytic::epilogueReductionElementSeconds * double(region.reductions.size());
  return seconds + (region.softmax ? analytic::epilogueSoftmaxSeconds : 0);
}

namespace {

/// What draws of dropout add to an element: by how many mixes of words eight of them share.
double drawSeconds(const Kernel &kernel, const ContractionRegion &region,
                   const Configuration &configuration, const GemmProblem &gemm) {
  double seconds = 0;
  for (const OpId op : region.elementwiseOps()) {
    if (kernel.body[op].kind != OpKind::dropout) continue;
    const ContractionGroups groups = groupsAsLaidOut(kernel, region, configuration.outputs[0]);
    const std::vector<AxisId> &axes = kernel.values[size_t(kernel.body[op].results[0])].axes;
    const std::vector<AxisId> &rows = groups[gemm.isSwapped ? nGroup : mGroup],
                              &columns = groups[gemm.isSwapped ? mGroup : nGroup];
    seconds += drawsByFragment(kernel, axes, rows, columns)   ? analytic::drawSeconds
               : drawsByFragment(kernel, axes, columns, rows) ? analytic::exchangedDrawSeconds
                                                              : analytic::singleDrawSeconds;
  }
  return seconds;
}

/// What operands add to an element that lie neither as the result nor along its rows or columns:
/// each element's is loaded by itself, and its coordinates are divisions where several axes make a
/// row or a column.
double scatteredSeconds(const Kernel &kernel, const ContractionRegion &region,
                        const Configuration &configuration) {
  const ContractionGroups groups = groupsAsLaidOut(kernel, region, configuration.outputs[0]);
  const auto divides = [&](ValueId value, ContractionGroup group) {
    const auto isLong = [&](AxisId axis) { return kernel.axes[size_t(axis)].extent > 1; };
    return std::ranges::count_if(groups[group], isLong) > 1 &&
           std::ranges::any_of(kernel.values[size_t(value)].axes, [&](AxisId axis) {
             return isLong(axis) && std::ranges::find(groups[group], axis) != groups[group].end();
           });
  };
  double seconds = 0;
  for (const EpilogueInput &input : region.inputs) {
    if (input.role == EpilogueRole::result || input.role == EpilogueRole::scalar) continue;
    if (isOfRotaryAlone(kernel, region, input.value)) continue;  // one a row
    const bool isVector = input.role == EpilogueRole::m || input.role == EpilogueRole::n;
    if (isVector && isContiguous(kernel, groups, input, configuration.inputs[input.input]))
      continue;
    seconds += analytic::epilogueScatteredSeconds;
    const ValueId placed = input.role == EpilogueRole::gathered ? region.c : input.value;
    if (divides(placed, mGroup) || divides(placed, nGroup))
      seconds += analytic::epilogueDivisionSeconds;
  }
  return seconds;
}

/// What statistics of sub-vectors add to an element where those of neighbouring rows are no
/// neighbours: each takes a sector.
double statisticSeconds(const Kernel &kernel, const ContractionRegion &region,
                        const Configuration &configuration) {
  if (!region.softmax) return 0;
  double seconds = 0;
  for (const size_t output : {region.softmax->maxima, region.softmax->sums}) {
    const auto strides = subVectorStrides(kernel, configuration, region, output);
    if (strides && strides->row > 1)
      seconds += analytic::scatteredStatisticSeconds / double(region.softmax->length);
  }
  return seconds;
}

/// What threads add to an element that they store themselves, where TMA takes none or not those of
/// the last columns.
double storeSeconds(const GemmProblem &gemm, DType type) {
  if (!isHalf(type) || gemm.storesOnlyByTma()) return 0;
  if (!gemm.usesTma) return analytic::threadStoreSeconds;
  constexpr int64_t subtile = 64;
  return analytic::clippedStoreSeconds * double(gemm.n % subtile) / double(gemm.n);
}

/// What the features of kernel and tile add to the uncertainty of the estimate.
double marginOf(const Kernel &kernel, const ContractionRegion &region, const GemmProblem &gemm,
                const Sm90GemmKnobs &knobs) {
  double margin = 0;
  if (knobs.streamK != 0) margin += margins::streamK;
  else if (knobs.splitK > 1) margin += margins::splitK;
  if (knobs.schedule == Sm90Schedule::singleConsumer) margin += margins::singleConsumer;
  if (std::ranges::any_of(region.elementwiseOps(),
                          [&](OpId op) { return kernel.body[op].kind == OpKind::dropout; }))
    margin += margins::dropout;
  if (!region.reductions.empty()) margin += margins::epilogueReduction;
  if (region.softmax) margin += margins::localSoftmax;
  if (gemm.isAnyTransformed() || gemm.isScaled()) margin += margins::prologue;
  return margin;
}

}  // namespace

double sm90TensorSeconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs, double elementSeconds,
                         const Device &device) {
  if (knobs.schedule == Sm90Schedule::singleConsumer)
    return singleConsumerSeconds(gemm, knobs, device);
  const double m = knobs.tileM, n = knobs.tileN;
  const double waves =
      std::ceil(double(sm90Tiles(gemm, knobs) * knobs.splitK) / concurrentBlocks(knobs, device));
  const double depth = std::ceil(double(sm90KTiles(gemm)) / knobs.splitK) * double(gemm.depth());
  const double intensity = m * n / (m + n);
  double efficiency = std::min(
      {analytic::sm90MostEfficiency,
       analytic::sm90LeastEfficiency + analytic::sm90EfficiencyPerIntensity * intensity,
       analytic::sm90WideEfficiency + analytic::sm90WideEfficiencyPerIntensity * intensity});
  if (!gemm.a.usesTma || !gemm.b.usesTma) efficiency *= analytic::sm90GuardedShare;
  const double gemmSeconds =
      2 * m * n * depth /
      (device.tensorFlops.at(gemm.operandType) / device.multiprocessors * efficiency);
  const double furtherWaves = std::min(m, n) > analytic::narrowTileSide
                                  ? 0
                                  : analytic::narrowTileWaveShare *
                                        std::min(waves - 1, analytic::narrowTileFurtherWaves) *
                                        std::sqrt(depth / analytic::narrowTileDepth);
  const double tileSeconds =
      std::max(gemmSeconds * (1 + furtherWaves), loadSeconds(gemm, knobs, depth, device));
  const double epilogueSeconds = elementSeconds * m * n / knobs.splitK;
  if (knobs.streamK != 0) {
    const double runs = double(sm90Tiles(gemm, knobs)) / concurrentBlocks(knobs, device),
                 left = 4 * m * n / analytic::splitKReductionBandwidth;
    const double factor = intensity < analytic::streamKWideIntensity ? analytic::streamKNarrowFactor
                                                                     : analytic::streamKWideFactor;
    return runs * factor * (tileSeconds + epilogueSeconds) + analytic::streamKSeconds + 2 * left;
  }
  const double l2 = l2Seconds(gemm, knobs, depth, waves);
  // The other consumer's WGMMA hides a share of an epilogue, but for the last one.
  const bool isPingPong = knobs.schedule == Sm90Schedule::pingPong;
  const double epilogues =
      isPingPong ? waves * analytic::pingPongShare + 1 - analytic::pingPongShare : waves;
  const double restarts = knobs.splitK > 1 ? (waves - 1) * analytic::clusterStartSeconds : 0;
  return std::max(waves * tileSeconds, l2) + epilogues * epilogueSeconds + reductionSeconds(knobs) +
         restarts;
}

Cost sm90Cost(const Kernel &kernel, const Configuration &configuration, const Sm90GemmKnobs &knobs,
              const Device &device) {
  const Expected<GemmProblem, Reason> answer = wgmmaProblem(kernel, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().text);
  const ContractionRegion &region = contractionRegion(kernel).value();
  double multiplySeconds = sm90TensorSeconds(
      *answer, knobs,
      sm90ElementSeconds(kernel, region) + drawSeconds(kernel, region, configuration, *answer) +
          scatteredSeconds(kernel, region, configuration) +
          statisticSeconds(kernel, region, configuration) +
          storeSeconds(*answer, kernel.values[size_t(region.c)].dtype),
      device);
  // Tiles that a block mask leaves nothing of have an epilogue alone.
  if (const auto masked = sm90MaskedTiles(kernel, region, *answer, knobs))
    multiplySeconds -= (1 - masked->seenShare(knobs.tileM, knobs.tileN)) *
                       sm90TensorSeconds(*answer, knobs, 0, device);
  // Slices are made while others are multiplied.
  const double waves =
      std::ceil(double(sm90Tiles(*answer, knobs)) / std::min(knobs.blocks, device.multiprocessors));
  const double depth = double(sm90KTiles(*answer) * answer->depth());
  const double transform = waves * transformSeconds(kernel, *answer, knobs.tileM, knobs.tileN,
                                                    depth, analytic::sm90TransformShare, device);
  const double tensorSeconds = std::max(multiplySeconds, transform);
  const double partial = partialBytes(kernel, *answer, knobs),
               necessary = double(kernel.necessaryBytes()) + partial;
  const double busy =
      double(std::min<int64_t>(sm90Blocks(*answer, knobs), device.multiprocessors)) /
      device.multiprocessors;
  const double memorySeconds =
      necessary / (device.copyBandwidth * std::min(1.0, analytic::sm90ShareOfMemory * busy));
  const double exposed =
      analytic::sm90ExposedShare * std::min(1.0, analytic::libraryDepthStep / double(answer->k));
  const double busySeconds =
      std::max(memorySeconds, tensorSeconds) + exposed * std::min(memorySeconds, tensorSeconds);
  Cost cost{.seconds = device.launchSeconds + analytic::sm90StartSeconds + busySeconds,
            .bytesMoved = int64_t(necessary),
            .bound = memorySeconds > tensorSeconds ? Bound::memory : Bound::tensor};
  if (partial > 0) cost.seconds += analytic::epilogueReductionSeconds;
  cost.seconds *= prologueFactor(*answer);
  if (answer->hasSeveralStrides()) cost.seconds += analytic::sm90StridesSeconds;
  if (device.launchSeconds > busySeconds) cost.bound = Bound::launch;
  return margins::added(cost, marginOf(kernel, region, *answer, knobs));
}

}  // namespace weft
