// The model of Sm90AttentionCost.h, and where its constants are from.
#include "codegen/families/attention_sm90/Sm90AttentionCost.h"

#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_sm90/Sm90AttentionTile.h"
#include "kernel/Error.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// H200, f16, sustained; tiles of 192 x 128 (d = 64), 192 x 112 (80, 96), 128 x 128 (128), 128 x 96
// (192), 128 x 80 (256) at L = 4096: 1.71, 1.85, 2.00, 1.72, 2.02, 2.32 us a block of keys, of
// which both GEMMs at the peak take 1.20, 1.32, 1.58, 1.61, 1.81, 2.00.

/// What an exponential adds to the GEMMs' time of its multiprocessor: with three consumers, with
/// two at d = 64 and as d grows, with two at least, and with one.
constexpr double exponentialOfThree = 2.1e-11, exponentialOfTwo = 3.8e-11,
                 leastExponentialOfTwo = 0.7e-11, exponentialOfOne = 5e-11;
/// The same where consumers do not take turns.
constexpr double unorderedExponential = 1.5e-11;
/// Where one block of one consumer has a multiprocessor to itself: its GEMMs wait for its
/// exponentials.
constexpr double loneConsumerFactor = 1.7;
/// Loading queries, the first scores and storing a tile, as far as nothing hides it; the start of a
/// block; what a value op and a mask add to a score, in shares of an exponential.
constexpr double tileSeconds = 0.7e-6, startSeconds = 1.5e-6, valueOpShare = 0.6, maskShare = 0.3;
/// The model is of an H200: multiprocessors with as much arithmetic.
constexpr double referenceTensorFlops = 690e12 / 132;

}  // namespace

Cost sm90AttentionCost(const Kernel &kernel, const Configuration &configuration,
                       const Sm90AttentionKnobs &knobs, const Device &device) {
  const AttentionRegionOrRejection recognised = attentionRegion(kernel);
  if (!recognised.region)
    throw Error::unsupported("kernel '{}': {}", kernel.name, recognised.rejection);
  const Expected<AttentionProblem> answer =
      attentionProblem(kernel, *recognised.region, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  const AttentionProblem &problem = *answer;

  const double flops = device.tensorFlops.at(problem.operandType) / device.multiprocessors;
  const double slower = referenceTensorFlops / flops;
  const int consumers = knobs.tileQueries / 64;
  const double scores = double(knobs.tileQueries) * knobs.tileKeys;
  const double width = double(problem.headDim + problem.valueDim) / 2;
  const double narrow = 64 / std::max(width, 16.0);
  double exponential = consumers == 3 ? exponentialOfThree
                       : consumers == 2
                           ? std::max(leastExponentialOfTwo, exponentialOfTwo * narrow * narrow)
                           : exponentialOfOne;
  if (consumers == 2 && knobs.ordered == 0) exponential += unorderedExponential;
  const VisibleScores visible = visibleScores(kernel, *recognised.region, problem);
  exponential *= 1 + valueOpShare * visible.valueOps;
  const double mixedBlocks =
      visible.hasMasks ? std::min(2.0, double(problem.keys) / knobs.tileKeys) : 0;
  double blockSeconds = 2 * scores * double(problem.headDim + problem.valueDim) / flops +
                        scores * exponential * slower;
  const double slots = double(device.multiprocessors),
               tiles = double(sm90AttentionTiles(problem, knobs));
  if (consumers == 1 && (tiles <= slots || sm90AttentionResidentBlocks(problem, knobs) == 1))
    blockSeconds *= loneConsumerFactor;

  const double keyBlocks = std::ceil(double(problem.keys) / knobs.tileKeys);
  const VisibleBlocks blocks =
      visible.hasMasks
          ? visibleBlocks(kernel, *recognised.region, problem, knobs.tileQueries, knobs.tileKeys)
          : VisibleBlocks{.mean = keyBlocks, .most = keyBlocks};
  const auto tileTime = [&](double seen) {
    return seen * blockSeconds + mixedBlocks * maskShare * scores * exponential * slower +
           tileSeconds * slower;
  };
  // Tiles that see few keys fill the gaps that others leave; the longest ones begin first.
  const double waves = blocks.mean < blocks.most ? tiles / slots + 0.3 : std::ceil(tiles / slots);
  const double tensorSeconds = std::max(waves * tileTime(blocks.mean), tileTime(blocks.most));

  const double bytes = double(kernel.necessaryBytes());
  const double memorySeconds = bytes / device.copyBandwidth;
  const double busySeconds = std::max(tensorSeconds, memorySeconds);
  return {.seconds = device.launchSeconds + startSeconds + busySeconds,
          .bytesMoved = int64_t(bytes),
          .bound = memorySeconds > tensorSeconds        ? Bound::memory
                   : device.launchSeconds > busySeconds ? Bound::launch
                                                        : Bound::tensor};
}

}  // namespace weft
