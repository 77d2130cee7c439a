// The model of Sm90AttentionCost.h, and where its constants are from.
#include "codegen/families/attention_sm90/Sm90AttentionCost.h"

#include "codegen/families/attention/AttentionScore.h"
#include "codegen/families/attention/PackedMasks.h"
#include "codegen/families/attention/RotatedQueries.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_sm90/Sm90AttentionTile.h"
#include "kernel/Error.h"
#include "kernel/RecentAnswers.h"
#include "passes/configure/AnalyticConstants.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

// H200, f16, sustained; tiles of 192 x 128 (d = 64), 192 x 112 (80, 96), 128 x 128 (128), 128 x 96
// (192), 128 x 80 (256) at L = 4096: 1.71, 1.85, 2.00, 1.72, 2.02, 2.32 us a block of keys, of
// which both GEMMs at the peak take 1.20, 1.32, 1.58, 1.61, 1.81, 2.00.

/// What an exponential adds to the GEMMs' time of its multiprocessor: with three consumers, with
/// two at d = 64 and as d grows, with two at least, and with one.
constexpr double exponentialOfThree = 2.1e-11, exponentialOfTwo = 2.5e-11,
                 leastExponentialOfTwo = 0.7e-11, exponentialOfOne = 3.2e-11;
/// What a random number adds to a score (H200, d = 64, 128 heads of 512 and 1536 of 128 keys: 33.2
/// us against 25.3 without, and 33.5 against 27.8).
constexpr double dropoutSeconds = 3.1e-11;
/// The same where consumers do not take turns.
constexpr double unorderedExponential = 1.5e-11;
/// Where one block of one consumer has a multiprocessor to itself, its GEMMs wait for its
/// exponentials; of two consumers with a block of keys each, less (H200, 12 heads of 64 columns,
/// 128 to 512 keys: 3.96, 4.81 and 6.58 us, and of two 5.10 and 6.75).
constexpr double loneConsumerFactor = 1.35, twoOfRowsFactor = 1.15;
/// Loading queries, the first scores and storing a tile, as far as nothing hides it; the start of a
/// block; what a value op adds to a score, in shares of an exponential, and masks to a block.
constexpr double tileSeconds = 0.7e-6, startSeconds = 0.2e-6, valueOpShare = 0.6, maskShare = 0.5;
/// Over packed tokens: finding the first tile, whose sequence, place and keys follow from the
/// counts of all; asking masks of the sequences' lengths, where kernels do not end at tokens; and
/// what a tile of several consumers takes (H200, BERT-base, 8 of at most 128 tokens to 16 of 1024,
/// 42 and 20 kernels).
constexpr double packedStartSeconds = 1.2e-6, lengthsSeconds = 1.2e-6, packedTileSeconds = 1.5e-6;
/// What three blocks of one consumer a multiprocessor take of the time that two take (H100, d = 64:
/// 0.87 under a causal window, 0.89 and 0.91 under tables, 0.92 causal).
constexpr double threeResidentsFactor = 0.9;
/// A tile that sees most keys takes so much longer for them where two or three blocks share the
/// multiprocessor (H100, d = 64, a row of 64 blocks: 46 us and 48 us).
constexpr double longestOfTwo = 1.7, longestOfThree = 2.0;
/// Writing, waiting for and reading the sums of a consumer that shares rows, for each column of the
/// values (estimate).
constexpr double joinSecondsOfColumn = 5e-9;
/// The last block of a tile whose keys are split: its sums reach device memory, it counts its
/// arrival, and reads those of one split after another from L2 (estimates).
constexpr double arrivalSeconds = 1.2e-6, splitSeconds = 0.7e-6;
/// Queries that are turned, beside their arithmetic: the trip to shared memory and back, the fence
/// and the barrier before the first scores (an estimate).
constexpr double rotationSeconds = 0.3e-6;
/// Two blocks a multiprocessor hide half of what a tile costs beside its blocks of keys (H200,
/// causal window of 128 keys: tiles of 64 x 64 138 TFLOP/s, of 128 x 128 126, of 192 x 64 100).
constexpr double residentTileShare = 0.5;
/// Blocks of 64 keys (H200, causal: 1.08 us at d = 64, 1.18 at d = 128; of 128 keys 1.71 and 1.72):
/// every block waits for its GEMMs and its turn.
constexpr int narrowKeys = 64;
constexpr double narrowFactor = 1.2;
/// The model is of an H200: multiprocessors with as much arithmetic.
constexpr double referenceTensorFlops = 690e12 / 132;

}  // namespace

Cost sm90AttentionCost(const Kernel &asked, const Configuration &configuration,
                       const Sm90AttentionKnobs &knobs, const Device &device) {
  const auto ended = withoutMasksOfPacked(asked);
  const Kernel &kernel = ended ? ended->kernel : asked;
  const SteadyKernel steady(kernel, ended ? ended->number : SteadyKernel::numberOf(asked));
  const Expected<AttentionRegion, Reason> &recognised = attentionRegion(kernel);
  if (!recognised)
    throw Error::unsupported("kernel '{}': {}", kernel.name, recognised.error().text);
  const Expected<AttentionProblem> &answer =
      keptAttentionProblem(kernel, *recognised, configuration);
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
  const VisibleScores visible = visibleScores(kernel, *recognised, problem);
  exponential *= 1 + valueOpShare * visible.valueOps;
  double blockSeconds =
      2 * scores * double(problem.headDim + problem.valueDim) / flops +
      scores * ((exponential + (recognised->hasDropout ? dropoutSeconds : 0)) * slower +
                scatteredLoadSeconds * visible.scatteredInputs);
  if (knobs.tileKeys <= narrowKeys) blockSeconds *= narrowFactor;
  const double slots = double(device.multiprocessors),
               tiles = double(sm90AttentionTiles(problem, knobs));
  const int residents = sm90AttentionResidentBlocks(problem, knobs);
  const bool isShared = tiles > slots && residents > 1;
  const int together = std::max(knobs.keyConsumers, 1);
  if (consumers == 1 && together == 1 && !isShared) blockSeconds *= loneConsumerFactor;
  if (together == 2 && !isShared) blockSeconds *= twoOfRowsFactor;
  if (together > 2) blockSeconds *= threeResidentsFactor;
  if (tiles > 2 * slots && residents > 2) blockSeconds *= threeResidentsFactor;

  const double keyBlocks = std::ceil(double(problem.keys) / knobs.tileKeys);
  const VisibleBlocks blocks =
      visible.hasMasks ? visibleBlocks(kernel, *recognised, problem,
                                       sm90QueriesOfTile(problem, knobs), knobs.tileKeys)
                       : VisibleBlocks{.mean = keyBlocks, .most = keyBlocks, .mixed = 0};
  // Splits take blocks of keys in turn.
  const double splits = double(knobs.splits);
  const auto ofSplit = [&](double seen) {
    return knobs.splits > 1 ? std::ceil(seen / splits) : seen;
  };
  // Consumers that share rows take as many blocks each: the last turn may be that of few.
  const double joinSeconds =
      (together - 1) * joinSecondsOfColumn * double(problem.valueDim) * slower;
  const double ofTileSeconds = (problem.packed && consumers > 1 ? packedTileSeconds : tileSeconds) +
                               (recognised->turned ? rotationSeconds : 0);
  const double turning = knobs.tileQueries * rotatedQuerySeconds(*recognised, device);
  const auto tileTime = [&](double ofTile) {
    const double seen = ofSplit(ofTile), turns = std::ceil(seen / together) * together;
    return ((together > 1 ? turns : seen) + maskShare * ofSplit(blocks.mixed)) * blockSeconds +
           ofTileSeconds * slower * (isShared ? residentTileShare : 1.0) + turning + joinSeconds;
  };
  // Tiles that see few keys fill the gaps that others leave; the longest ones begin first.
  const double waves = blocks.mean < blocks.most ? tiles / slots + 0.3 : std::ceil(tiles / slots);
  const double longest = !isShared || blocks.mean >= blocks.most ? 1
                         : residents > 2                         ? longestOfThree
                                                                 : longestOfTwo;
  double tensorSeconds = std::max(waves * tileTime(blocks.mean), longest * tileTime(blocks.most));
  // The longest of the last heads that are taken together begin when what is before them is done
  // (H100: 18 heads of 2273 causal queries, 16 of them together: 76.6 us, 1.49 of what all at once
  // would take). Tiles of twice the mean are taken of all heads before others.
  if (knobs.headGroup > 0 && blocks.mean < blocks.most) {
    const double heads = double(problem.heads),
                 last = std::fmod(heads - 1, double(knobs.headGroup)) + 1,
                 before = (1 - last / heads) * tiles / slots * tileTime(blocks.mean);
    tensorSeconds = std::max(tensorSeconds,
                             before + longest * tileTime(std::min(blocks.most, 2 * blocks.mean)));
  }

  const double bytes = double(kernel.necessaryBytes());
  double memorySeconds = bytes / device.copyBandwidth, combineSeconds = 0;
  if (knobs.splits > 1) {
    // Every tile may wait for L2, which brings it all keys that it sees.
    const double bandwidth = device.copyBandwidth * analytic::l2Speedup,
                 bytesOfBlock = knobs.tileKeys * double(problem.headDim + problem.valueDim) *
                                double(sizeOf(problem.operandType));
    memorySeconds =
        std::max(memorySeconds, tiles * ofSplit(blocks.mean) * bytesOfBlock / bandwidth);
    combineSeconds = arrivalSeconds + splits * splitSeconds +
                     2 * double(sm90AttentionPartialBytes(problem, knobs)) / bandwidth;
  }
  const double busySeconds = std::max(tensorSeconds, memorySeconds) + combineSeconds;
  const double ofPacked = packedStartSeconds + (ended && ended->endsAtTokens ? 0 : lengthsSeconds),
               beginSeconds = startSeconds + (problem.packed ? ofPacked * slower : 0);
  return withRotationMargin(*recognised,
                            {.seconds = device.launchSeconds + beginSeconds + busySeconds,
                             .bytesMoved = int64_t(bytes),
                             .bound = memorySeconds > tensorSeconds        ? Bound::memory
                                      : device.launchSeconds > busySeconds ? Bound::launch
                                                                           : Bound::tensor});
}

}  // namespace weft
