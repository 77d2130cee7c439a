// The model of Sm80AttentionCost.h.
#include "codegen/families/attention_sm80/Sm80AttentionCost.h"

#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/RotatedQueries.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_sm80/Sm80AttentionCostConstants.h"
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"
#include "codegen/families/contraction/MmaSyncCostConstants.h"
#include "codegen/targets/Targets.h"
#include "kernel/Error.h"
#include "passes/configure/AnalyticConstants.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace weft {
namespace {

/// Instructions of a score, as a share of the FMA units' rate, that an exponential and the maxima
/// and sums cost; what a value op and a mask add, and dropout: a mix of words for eight scores, and
/// a comparison and a choice for each (estimates).
constexpr double scoreInstructions = 8, valueOpInstructions = 6, maskInstructions = 4,
                 dropoutInstructions = 6;
/// Share of the lesser of tensor and score time that the greater does not hide, with one block a
/// multiprocessor and with several (estimates).
constexpr double exposedAlone = 0.9, exposedShared = 0.5;
/// Loading queries and the first keys, and storing a block (estimate).
constexpr double blockSeconds = 1.5e-6;
/// What a block that turns its queries waits for them, before it asks for keys (an estimate).
constexpr double queryWaitSeconds = 0.5e-6;
constexpr double sharedBytesOfMultiprocessor = 164 * 1024;
constexpr double threadsOfMultiprocessor = 512;  // at 128 registers

/// Of kernels that join rows (estimates). From one tile of keys of a warp to its next: products,
/// maxima and exponentials, one after the other, and the barrier.
constexpr double tileLatencySeconds = 0.5e-6;
/// The last block of a tile of rows: its rows reach device memory, it counts its arrival and reads
/// those of up to sixteen splits at a time.
constexpr double arrivalSeconds = 1.2e-6, partialsSeconds = 0.6e-6, partialsAtOnce = 16;

/// Seconds of the tensor cores and of the other units for a tile of keys, on one multiprocessor.
struct TileSeconds {
  double tensor, scores;
  double exposed(double share) const {
    return std::max(tensor, scores) + share * std::min(tensor, scores);
  }
};

TileSeconds tileSecondsOf(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs,
                          const VisibleScores &visible, bool hasDropout, const Device &device) {
  const double share = codegen::hasWgmma(device.architecture) ? analytic::mmaSyncShareOfWgmma
                                                              : analytic::mmaSyncShare;
  const double tensorRate =
      share * device.tensorFlops.at(problem.operandType) / device.multiprocessors;
  const double instructionRate = device.fmaFlops / 2 / device.multiprocessors;
  const int64_t unit = problem.operandType == DType::tf32 ? 8 : 16;  // columns of a product
  const auto padded = [&](int64_t columns) { return double((columns + unit - 1) / unit * unit); };
  const double scores = double(knobs.tileQueries) * knobs.tileKeys;
  return {.tensor = 2 * scores * (padded(problem.headDim) + padded(problem.valueDim)) / tensorRate,
          .scores = scores * ((scoreInstructions + valueOpInstructions * visible.valueOps +
                               (hasDropout ? dropoutInstructions : 0)) /
                                  instructionRate +
                              scatteredLoadSeconds * visible.scatteredInputs)};
}

/// What the start of a block takes beside blockSeconds where it turns its queries.
double rotationSecondsOf(const AttentionRegion &region, const Sm80AttentionKnobs &knobs,
                         const Device &device) {
  if (!region.turned) return 0;
  return queryWaitSeconds + knobs.tileQueries * rotatedQuerySeconds(region, device);
}

/// What of the keys masks leave to a tile of rows, in tiles of keys.
struct SeenKeys {
  double tiles = 0;
  VisibleScores visible = {};
  bool hasDropout = false;
};
SeenKeys seenKeys(const Kernel &kernel, const AttentionRegion &region,
                  const AttentionProblem &problem, const Sm80AttentionKnobs &knobs) {
  const VisibleScores visible = visibleScores(kernel, region, problem);
  const double all = std::ceil(double(problem.keys) / knobs.tileKeys);
  if (!visible.hasMasks) return {.tiles = all, .visible = visible, .hasDropout = region.hasDropout};
  const int64_t queries = std::max<int64_t>(1, knobs.tileQueries / sm80PackedHeads(problem, knobs));
  const double seen = visibleBlocks(kernel, region, problem, queries, knobs.tileKeys).mean;
  return {.tiles = std::clamp(std::ceil(seen), 1.0, all),
          .visible = visible,
          .hasDropout = region.hasDropout};
}

struct DecodingCost {
  double memory = 0, compute = 0, combine = 0;
  double bytes = 0;  ///< from and to DRAM
};
DecodingCost decodingCost(const AttentionProblem &problem, const Sm80AttentionKnobs &knobs,
                          const SeenKeys &seen, double rotationSeconds, const Device &device) {
  const double multiprocessors = device.multiprocessors;
  const double resident =
                   sm80AttentionResidentBlocks(problem, knobs, device.sharedMemoryPerBlock + 1024),
               blocks = double(sm80AttentionBlocks(problem, knobs));
  // Whole waves, then the blocks of the busiest multiprocessor in the last one.
  const double waves = std::floor(blocks / (resident * multiprocessors)),
               left = blocks - waves * resident * multiprocessors,
               leftResident = std::ceil(left / multiprocessors);

  const double element = double(sizeOf(problem.operandType)),
               bytesOfTile = knobs.tileKeys * double(problem.headDim + problem.valueDim) * element,
               tilesOfBlock = std::ceil(seen.tiles / knobs.splits);
  const double groups = double(problem.heads / problem.headsOfGroup),
               readers = double(sm80AttentionRowTiles(problem, knobs)) / groups;
  // As bytes of DRAM: one of the readers of a tile loads it from there, L2 brings it to all.
  const double bytesOfBlock =
      tilesOfBlock * bytesOfTile * std::max(1 / readers, 1 / analytic::l2Speedup);
  // So many blocks at once: all that they have in flight fills the memory's latency, but one
  // multiprocessor has little more than its share.
  const auto secondsOf = [&](double blocksAtOnce) {
    const double inFlight = blocksAtOnce / multiprocessors * (knobs.stages - 1) * bytesOfTile,
                 reached = 1 - std::exp(-inFlight * analytic::referenceBandwidth(device) /
                                        analytic::rowBytesInFlight);
    return bytesOfBlock / device.copyBandwidth *
           std::max(blocksAtOnce / reached, std::ceil(blocksAtOnce / multiprocessors) *
                                                multiprocessors / analytic::loneMultiprocessorGain);
  };
  DecodingCost cost;
  cost.memory = waves * secondsOf(resident * multiprocessors) + (left > 0 ? secondsOf(left) : 0);
  const TileSeconds tile = tileSecondsOf(problem, knobs, seen.visible, seen.hasDropout, device);
  const double ofMultiprocessor = waves * resident + leftResident;
  cost.compute = std::max(ofMultiprocessor * tilesOfBlock * tile.exposed(exposedShared),
                          (waves + (left > 0 ? 1 : 0)) * tilesOfBlock * tileLatencySeconds);
  // What a block loads before its first product and stores behind its last: of all blocks but the
  // first ones, others that are resident hide it.
  const double starts = (blockSeconds + rotationSeconds) *
                        (1 + std::max(0.0, waves + (left > 0 ? 1 : 0) - 1) / resident);
  cost.memory += starts, cost.compute += starts;

  const double operands = double(problem.heads) * double(problem.queries) *
                          double(problem.headDim + problem.valueDim) * element;
  cost.bytes = groups * seen.tiles * bytesOfTile + operands;
  if (knobs.splits > 1) {
    const double partials = 2 * double(sm80AttentionPartialBytes(problem, knobs));
    cost.combine = arrivalSeconds + partialsSeconds * std::ceil(knobs.splits / partialsAtOnce) +
                   partials / (device.copyBandwidth * analytic::l2Speedup);
    cost.bytes += partials / 2;
  }
  return cost;
}

}  // namespace

Cost sm80AttentionCost(const Kernel &kernel, const Configuration &configuration,
                       const Sm80AttentionKnobs &knobs, const Device &device) {
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised)
    throw Error::unsupported("kernel '{}': {}", kernel.name, recognised.error().text);
  const Expected<AttentionProblem> &answer =
      keptAttentionProblem(kernel, *recognised, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  const AttentionProblem &problem = *answer;
  const VisibleScores visible = visibleScores(kernel, *recognised, problem);

  if (sm80AttentionJoins(knobs)) {
    const DecodingCost cost =
        decodingCost(problem, knobs, seenKeys(kernel, *recognised, problem, knobs),
                     rotationSecondsOf(*recognised, knobs, device), device);
    const double busy =
        (std::max(cost.memory, cost.compute) + cost.combine) *
        (codegen::hasWgmma(device.architecture) ? analytic::mmaSyncUnmeasured : 1.0);
    return withRotationMargin(
        *recognised, {.seconds = device.launchSeconds + analytic::mmaSyncStartSeconds + busy,
                      .bytesMoved = int64_t(cost.bytes),
                      .bound = device.launchSeconds > busy   ? Bound::launch
                               : cost.memory >= cost.compute ? Bound::memory
                                                             : Bound::tensor});
  }

  const TileSeconds tile = tileSecondsOf(problem, knobs, visible, recognised->hasDropout, device);
  const double scores = double(knobs.tileQueries) * knobs.tileKeys;
  const double instructionRate = device.fmaFlops / 2 / device.multiprocessors;
  const double resident =
      std::max(1.0, std::min(std::floor(sharedBytesOfMultiprocessor /
                                        double(sm80AttentionSharedBytes(problem, knobs))),
                             std::floor(threadsOfMultiprocessor / sm80AttentionThreads(knobs))));
  const double tileSeconds = tile.exposed(resident > 1 ? exposedShared : exposedAlone);

  const double keyTiles = std::ceil(double(problem.keys) / knobs.tileKeys);
  VisibleBlocks counted{
      .mean = std::min(keyTiles, visible.share * keyTiles + (visible.hasMasks ? 1.0 : 0.0)),
      .mixed = visible.hasMasks ? std::min(2.0, keyTiles) : 0};
  if (visible.hasTables)
    counted = visibleBlocks(kernel, *recognised, problem, knobs.tileQueries, knobs.tileKeys);
  const double ofBlock = counted.mean * tileSeconds +
                         counted.mixed * scores * maskInstructions / instructionRate +
                         (blockSeconds + rotationSecondsOf(*recognised, knobs, device)) / resident;
  const double blocks = double(sm80AttentionBlocks(problem, knobs));
  // Blocks that see few keys fill the gaps that others leave.
  const double waves = visible.share < 0.9 ? std::max(1.0, blocks / device.multiprocessors + 0.5)
                                           : std::ceil(blocks / device.multiprocessors);
  const double bytes = double(kernel.necessaryBytes());
  const double memorySeconds = bytes / device.copyBandwidth;
  const double computeSeconds =
      waves * ofBlock *
      (codegen::hasWgmma(device.architecture) ? analytic::sm80AttentionOnWgmma : 1.0);
  const double busySeconds = std::max(memorySeconds, computeSeconds);
  return withRotationMargin(
      *recognised, {.seconds = device.launchSeconds + analytic::mmaSyncStartSeconds + busySeconds,
                    .bytesMoved = int64_t(bytes),
                    .bound = device.launchSeconds > busySeconds ? Bound::launch
                             : memorySeconds > computeSeconds   ? Bound::memory
                                                                : Bound::tensor});
}

bool isDecoding(const AttentionProblem &problem) {
  constexpr int64_t mostRows = 1024, leastKeysOfQuery = 4;
  return problem.queries * problem.headsOfGroup <= mostRows &&
         problem.keys >= leastKeysOfQuery * problem.queries;
}

std::vector<Sm80AttentionKnobs> sm80DecodingChoices(const Kernel &kernel,
                                                    const AttentionRegion &region,
                                                    const AttentionProblem &problem,
                                                    const Device &device) {
  if (!isDecoding(problem)) return {};
  constexpr int mostSplits = 256;
  const Sm80ScoreNeeds needs = sm80ScoreNeeds(kernel, region, problem);
  const bool isPacked = problem.headsOfGroup > 1 && !region.hasDropout;
  const int64_t rows = problem.queries * (isPacked ? problem.headsOfGroup : 1);
  std::vector<Sm80AttentionKnobs> choices;
  for (const int tileQueries : {16, 32, 64, 128}) {
    // The least tile that has all rows; of more rows the two largest.
    const bool isLeast = rows <= tileQueries && (tileQueries == 16 || rows > tileQueries / 2);
    if (!isLeast && !(rows > tileQueries && tileQueries >= 64)) continue;
    for (const int stages : {2, 3, 4})
      for (const int tileKeys : {128, 64, 32}) {
        Sm80AttentionKnobs knobs{.tileQueries = tileQueries,
                                 .tileKeys = tileKeys,
                                 .stages = stages,
                                 .packed = isPacked ? 1 : 0};
        if (!sm80AttentionTileRejection(problem, knobs, needs).empty()) continue;
        const SeenKeys seen = seenKeys(kernel, region, problem, knobs);
        const auto leastFrom = [&](int first) {
          double least = std::numeric_limits<double>::infinity();
          std::optional<Sm80AttentionKnobs> best;
          for (knobs.splits = first; knobs.splits <= std::min<double>(seen.tiles, mostSplits);
               ++knobs.splits) {
            if (!sm80AttentionTileRejection(problem, knobs, needs).empty()) break;
            if (!sm80AttentionJoins(knobs)) continue;
            const DecodingCost cost = decodingCost(
                problem, knobs, seen, rotationSecondsOf(region, knobs, device), device);
            const double seconds = std::max(cost.memory, cost.compute) + cost.combine;
            if (seconds < least) least = seconds, best = knobs;
          }
          return best;
        };
        const std::optional<Sm80AttentionKnobs> best = leastFrom(1);
        if (!best) break;
        choices.push_back(*best);
        if (const auto more = leastFrom(best->splits + (best->splits + 1) / 2))
          choices.push_back(*more);
        break;  // the widest tile of keys that fits
      }
  }
  return choices;
}

}  // namespace weft
