// The model of Sm80AttentionBackwardCost.h.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardCost.h"

#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardTile.h"
#include "codegen/families/contraction/MmaSyncCostConstants.h"
#include "codegen/targets/Targets.h"
#include "kernel/Error.h"
#include "passes/configure/AnalyticConstants.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// Instructions of a score, as a share of the FMA units' rate, that an exponential, rounding and
/// the addresses of rows cost; what a value op and a mask add (estimates).
constexpr double scoreInstructions = 8, valueOpInstructions = 3, maskInstructions = 4;
/// Share of the lesser of tensor and element-wise time that the greater does not hide, with one
/// block a multiprocessor and with several (estimates).
constexpr double exposedAlone = 0.9, exposedShared = 0.5;
/// What barriers and copies add to a step: a share of the rest, and columns of the same time; with
/// several blocks a multiprocessor and with one. What masks add to every step that they leave
/// something of. H100, f16: 64 columns, 512 and 4,096 keys, dense, causal and tables of 5 to 25% of
/// the tiles, 64 and 128 rows, 16 to 64 columns a step; 128 columns, 2,048 keys. 53 kernels, of
/// which 46 within 15% (docs/experiments/attention.md).
constexpr double sharedStep = 0.92, sharedStepColumns = 6.5, aloneStep = 0.78,
                 aloneStepColumns = 11, maskedStep = 1.18;
/// Loading a block's own tile and its first step, and storing its gradients (estimate).
constexpr double blockSeconds = 2e-6;
constexpr double sharedBytesOfMultiprocessor = 164 * 1024;
constexpr double threadsOfMultiprocessor = 256;  // at 255 registers

}  // namespace

Cost sm80AttentionBackwardCost(const Kernel &kernel, const Configuration &configuration,
                               const Sm80AttentionBackwardKnobs &knobs, const Device &device) {
  const Expected<AttentionBackwardRegion, Reason> &recognised = attentionBackwardRegion(kernel);
  if (!recognised)
    throw Error::unsupported("kernel '{}': {}", kernel.name, recognised.error().text);
  const AttentionBackwardRegion &region = *recognised;
  const Expected<AttentionBackwardProblem> &answer =
      keptAttentionBackwardProblem(kernel, region, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  const AttentionProblem &attention = answer->attention;
  const bool hasWgmma = codegen::hasWgmma(device.architecture);

  const double share = hasWgmma ? analytic::mmaSyncShareOfWgmma : analytic::mmaSyncShare;
  const double tensorRate =
      share * device.tensorFlops.at(attention.operandType) / device.multiprocessors;
  const double instructionRate = device.fmaFlops / 2 / device.multiprocessors;
  const int64_t unit = attention.operandType == DType::tf32 ? 8 : 16;  // columns of a product
  const auto padded = [&](int64_t columns) { return double((columns + unit - 1) / unit * unit); };
  const double headDim = padded(attention.headDim), valueDim = padded(attention.valueDim);
  const double scores = double(knobs.tileRows) * knobs.tileColumns;
  const AttentionRegion ofScores = attentionOf(kernel, region);
  const VisibleScores visible = visibleScores(kernel, ofScores, attention);
  const double elementSeconds =
      scores * ((scoreInstructions +
                 valueOpInstructions * codegen::valueOpsOfGradients(kernel, region, *answer)) /
                    instructionRate +
                scatteredLoadSeconds * visible.scatteredInputs);
  const double resident = std::max(
      1.0, std::min(std::floor(sharedBytesOfMultiprocessor /
                               double(sm80AttentionBackwardSharedBytes(
                                   *answer, knobs, codegen::rowFloatsOf(kernel, region)))),
                    std::floor(threadsOfMultiprocessor / sm80AttentionBackwardThreads(knobs))));
  const double exposed = resident > 1 ? exposedShared : exposedAlone;

  const auto stepsOf = [&](bool isOfKeys) {
    const double positions = double(isOfKeys ? attention.queries : attention.keys),
                 steps = std::ceil(positions / knobs.tileColumns);
    // The longest row of a triangle has twice the steps of the mean.
    if (!visible.hasTables)
      return VisibleBlocks{
          .mean = std::min(steps, visible.share * steps + (visible.hasMasks ? 1.0 : 0.0)),
          .most = std::min(steps, 2 * visible.share * steps + (visible.hasMasks ? 1.0 : 0.0)),
          .mixed = visible.hasMasks ? std::min(2.0, steps) : 0};
    if (!isOfKeys)
      return visibleBlocks(kernel, ofScores, attention, knobs.tileRows, knobs.tileColumns);
    // As many pairs of a block of keys and one of queries, seen from the keys.
    VisibleBlocks counted =
        visibleBlocks(kernel, ofScores, attention, knobs.tileColumns, knobs.tileRows);
    const double turned = steps / std::ceil(double(attention.keys) / knobs.tileRows);
    counted.mean *= turned, counted.mixed *= turned, counted.most *= turned;
    return counted;
  };
  const double stepFactor = (resident > 1 ? sharedStep + sharedStepColumns / knobs.tileColumns
                                          : aloneStep + aloneStepColumns / knobs.tileColumns) *
                            (visible.hasMasks ? maskedStep : 1);
  struct Blocks {
    double mean, most;  // seconds of a multiprocessor
  };
  const auto blocksOf = [&](double columns, bool isOfKeys, double heads) {
    const VisibleBlocks steps = stepsOf(isOfKeys);
    const double tensorSeconds = 2 * scores * columns / tensorRate,
                 stepSeconds = stepFactor * (std::max(tensorSeconds, elementSeconds) +
                                             exposed * std::min(tensorSeconds, elementSeconds)),
                 beside = heads * steps.mixed * scores * maskInstructions / instructionRate +
                          blockSeconds / resident;
    return Blocks{heads * steps.mean * stepSeconds + beside,
                  heads * std::max(steps.mean, steps.most) * stepSeconds + beside};
  };
  // Of wide heads half of the blocks with keys have three products, the others two: as if all had
  // the mean, and the longest three.
  const bool isWide = sm80AttentionBackwardIsWide(*answer);
  const double heads = double(attention.headsOfGroup);
  Blocks ofKeys =
      blocksOf(isWide ? 1.5 * headDim + valueDim : 2 * (headDim + valueDim), true, heads);
  if (isWide) ofKeys.most = blocksOf(2 * headDim + valueDim, true, heads).most;
  const Blocks ofQueries = blocksOf(2 * headDim + valueDim, false, 1);
  const double keyBlocks = double(sm80AttentionBackwardKeyBlocks(*answer, knobs)),
               queryBlocks = double(sm80AttentionBackwardBlocks(*answer, knobs)) - keyBlocks;
  const double all =
      (keyBlocks * ofKeys.mean + queryBlocks * ofQueries.mean) / device.multiprocessors;
  // Under a table the longest block may begin last; else long ones begin first. One has its share
  // of a multiprocessor, however few there are: those with keys step over the queries of all heads
  // that share them (H100: 13 heads on 1, 45 blocks with keys, 82 us; 9 on 1, d=80, 60 blocks,
  // 115 us).
  const double computeSeconds =
      storedScoreSeconds(*answer, device) +
      (visible.hasTables
           ? all + std::max(ofKeys.most - ofKeys.mean / 2, ofQueries.most - ofQueries.mean / 2)
           : std::max(all + std::max(ofKeys.mean, ofQueries.mean) / 2,
                      resident * std::max(ofKeys.most, ofQueries.most)));
  const double bytes = double(kernel.necessaryBytes());
  const double memorySeconds = bytes / device.copyBandwidth;
  const double busySeconds = std::max(memorySeconds, computeSeconds);
  return {.seconds = device.launchSeconds + analytic::mmaSyncStartSeconds + busySeconds,
          .bytesMoved = int64_t(bytes),
          .bound = device.launchSeconds > busySeconds ? Bound::launch
                   : memorySeconds > computeSeconds   ? Bound::memory
                                                      : Bound::tensor};
}

}  // namespace weft
