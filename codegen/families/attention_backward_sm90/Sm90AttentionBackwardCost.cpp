// The model of Sm90AttentionBackwardCost.h, and where its constants are from.
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardCost.h"

#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_backward/AttentionBackwardProblem.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"
#include "kernel/Error.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// What all else adds to the time of the GEMMs at the peak, over the columns of a head: of ten
/// kernels on an H200, 64 and 128 columns, 512 to 16,384 keys, with a causal mask and without
/// (docs/experiments/attention.md).
constexpr double columnsOfSameTime = 30;
/// Blocks of 64 queries: more barriers a score, and keys and values read twice as often (of the
/// same kernels).
constexpr double narrowFactor = 1.12;
/// What a value op adds to a score, in shares of all that is no GEMM, and masks to a block
/// (estimates).
constexpr double valueOpShare = 0.1, maskShare = 0.15;
/// What the tables of block masks add to a block that they leave in part (H100, tables of 10 and
/// 25% of the tiles: 0.55 and 0.44).
constexpr double tableShare = 0.5;
/// Loading keys and values and storing their gradients, as far as nothing hides it (of the same
/// kernels); the start of a block (estimate).
constexpr double tileSeconds = 3.3e-6, startSeconds = 2.5e-6;
/// Sums of the queries' gradient that go through L2 in one second and multiprocessor (estimate).
constexpr double sumBandwidth = 20e9;

}  // namespace

Cost sm90AttentionBackwardCost(const Kernel &kernel, const Configuration &configuration,
                               const Sm90AttentionBackwardKnobs &knobs, const Device &device) {
  const AttentionBackwardRegionOrRejection recognised = attentionBackwardRegion(kernel);
  if (!recognised.region)
    throw Error::unsupported("kernel '{}': {}", kernel.name, recognised.rejection);
  const Expected<AttentionBackwardProblem> answer =
      attentionBackwardProblem(kernel, *recognised.region, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  const AttentionProblem &problem = answer->attention;
  const AttentionRegion scores = attentionOf(kernel, *recognised.region);

  const double flops = device.tensorFlops.at(problem.operandType) / device.multiprocessors;
  const double elements = double(knobs.tileQueries) * knobs.tileKeys;
  const double width = double(problem.headDim + problem.valueDim) / 2;
  const VisibleScores visible = visibleScores(kernel, scores, problem);
  const double beside =
      columnsOfSameTime / std::max(width, 16.0) * (1 + valueOpShare * visible.valueOps);
  const double gemmSeconds =
      2 * elements * (3 * double(problem.headDim) + 2 * double(problem.valueDim)) / flops;
  double blockSeconds = gemmSeconds * (1 + beside);
  if (knobs.tileQueries < 128) blockSeconds *= narrowFactor;
  // A sum warp adds the gradient of a block beside the GEMMs of the next one.
  blockSeconds =
      std::max(blockSeconds, 4.0 * knobs.tileQueries * double(problem.headDim) / sumBandwidth);

  const double keyTiles = std::ceil(double(problem.keys) / knobs.tileKeys),
               queryTiles = std::ceil(double(problem.queries) / knobs.tileQueries),
               heads = double(problem.headsOfGroup);
  const VisibleBlocks seen =
      visible.hasMasks ? visibleBlocks(kernel, scores, problem, knobs.tileQueries, knobs.tileKeys)
                       : VisibleBlocks{.mean = keyTiles, .most = keyTiles, .mixed = 0};
  const auto tileTime = [&](double keyBlocks) {
    const double ofKeyTile = keyBlocks * queryTiles / keyTiles * heads;
    return ofKeyTile * blockSeconds + tileSeconds;
  };
  const double mixed = (visible.hasTables ? tableShare : maskShare) * seen.mixed;
  const double slots = double(device.multiprocessors),
               tiles = double(sm90AttentionBackwardTiles(*answer, knobs));
  // Tiles that few queries see fill the gaps that others leave; the longest ones begin first.
  const double waves = seen.mean < seen.most ? tiles / slots + 0.3 : std::ceil(tiles / slots);
  const double all = waves * tileTime(seen.mean + mixed), longest = tileTime(seen.most + mixed);
  // Under a table others wait for the turns of the longest (H100: a global tile of 16.5% of all
  // scores, 238 us, of which it takes 94).
  const double tensorSeconds =
      visible.hasTables ? all + longest - tileTime(seen.mean + mixed) : std::max(all, longest);

  // Sums of the queries' gradient are read again, and rounded, when all tiles are done.
  const double sums = double(problem.heads) * double(problem.queries) * double(problem.headDim);
  const double roundingSeconds =
      keyTiles > 1 ? sums * (4 + double(sizeOf(problem.operandType))) / device.copyBandwidth : 0;
  const double bytes = double(kernel.necessaryBytes());
  const double memorySeconds = bytes / device.copyBandwidth;
  const double busySeconds = std::max(tensorSeconds, memorySeconds);
  const Cost cost{.seconds = device.launchSeconds + startSeconds + busySeconds + roundingSeconds,
                  .bytesMoved = int64_t(bytes),
                  .bound = memorySeconds > tensorSeconds        ? Bound::memory
                           : device.launchSeconds > busySeconds ? Bound::launch
                                                                : Bound::tensor};
  return cost;
}

}  // namespace weft
