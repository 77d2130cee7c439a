// The model of Sm90AttentionBackwardCost.h, and where its constants are from.
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardCost.h"

#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_backward/AttentionBackwardProblem.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"
#include "kernel/Error.h"

#include <algorithm>
#include <cmath>
#include <span>

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

/// Where several tiles have the same keys: storing a tile's part of their gradients and counting
/// it, as far as nothing hides it, and adding up a column of one part (estimates).
constexpr double partSeconds = 3.5e-6, addSecondsOfColumn = 6e-9;
/// What L2 holds of the queries, gradients of the output and sums of the heads in flight; where it
/// holds less, what waiting for memory costs over the time of the bytes: where a tile is of several
/// heads (H100, 96 heads of 128 columns, 4676 queries, all in flight: 4.46 ms, of 10 in flight
/// 3.15), and of one, whose GEMMs hide most of it (64 heads of 128 columns, 4096 causal queries, of
/// 29, 16 and 8 together: 1.49, 1.44 and 1.48 ms).
constexpr double bytesInL2 = 50e6, missFactor = 5, missFactorOfOneHead = 0.25;
/// Tiles that see fewer queries the later their keys, and begin at one time, wait for those before
/// them twice: to begin, and behind each block. What each but the first four of a head adds, over
/// the square of a head's tiles (H100, 285 heads of 64 columns, 1609 causal queries, of 57, 41, 29,
/// 19, 12, 8 and 5 together: 791, 787, 780, 843, 981, 1160 and 1290 us).
constexpr double stairShare = 6;
constexpr double freeStairs = 4;

/// What the order of key tiles costs: a copy's way to L2 and back, with the counter that lets the
/// next one begin (estimate). At most this share of all: what else a block takes was measured of
/// kernels that waited for their semaphores, and has a part of it.
constexpr double semaphoreSeconds = 1.2e-6, mostOrderShare = 0.1;
/// The same where all tiles run at once, so that nothing hides it (H200, 14 kernels of 48 to 128
/// tiles of keys: 1.6 to 2.5, more of three with two or three tiles a head).
constexpr double bareSemaphoreSeconds = 2.3e-6;
/// What is left of it in any order, where tiles that begin with one block of queries add to the
/// same sums at the same time (estimate).
constexpr double collisionShare = 0.5;

/// What a random number adds to a score, of a multiprocessor: in one kernel (H200, d = 64, 128
/// heads of 512 and 1536 of 128 keys: 17 us of 88 and 12 of 92), and in each of two (9 us of 89).
constexpr double dropoutSeconds = 6.5e-11, apartDropoutSeconds = 3.5e-11;

/// Of gradients apart, which nobody waits for: what a tile's products do not take; what a tile
/// takes besides, of which others hide all but the last; and blocks of 32 queries (H200, 48
/// measurements, 64, 96 and 128 columns, 256 to 16,384 keys, with a causal mask and without: 7.5%
/// deviation).
constexpr double apartBesideShare = 0.25, apartTileSeconds = 1.1e-6, apartLastShare = 0.26,
                 apartNarrowFactor = 1.13;
/// Of tiles of one gradient, whose circular buffer of operands holds less than two blocks
/// (estimate).
constexpr double singleFactor = 1.1;
/// Of two tiles that share a multiprocessor, the time of one over that of one alone.
constexpr double apartSharedFactor = 1.83;
/// Loads under a condition of each score, over those without.
constexpr double conditionFactor = 2;
/// Blocks that a multiprocessor can load from L2 in one second, in bytes.
constexpr double apartLoadBandwidth = 45e9;

/// What both forms are priced from.
struct Priced {
  const Kernel &kernel;
  const AttentionBackwardProblem &problem;
  const AttentionRegion scores;
  const Sm90AttentionBackwardKnobs &knobs;
  const Device &device;
  const VisibleScores visible;
  const bool hasDropout;

  double flops() const {
    return device.tensorFlops.at(problem.attention.operandType) / device.multiprocessors;
  }
  double elements() const { return double(knobs.tileQueries) * knobs.tileKeys; }
  double width() const {
    return double(problem.attention.headDim + problem.attention.valueDim) / 2;
  }
  /// Of a block, what loads of tensors with an element for each score take (H200, d = 64, L = 1024,
  /// 32 heads that share 16 biases: 34 us, priced at 36; of gradients apart, which load them twice,
  /// 58 and 71; under conditions 142, the difference of two kernels).
  double loading() const {
    const double factor =
        sm90AttentionBackwardLoadsUnderConditions(problem, knobs) ? conditionFactor : 1;
    return factor * elements() * scatteredLoadSeconds * visible.scatteredInputs;
  }
  /// Of a block, what its random numbers take.
  double dropping(double ofScore) const { return hasDropout ? elements() * ofScore : 0; }
  /// What all else adds to five GEMMs, as a share of their time.
  double beside() const {
    return columnsOfSameTime / std::max(width(), 16.0) * (1 + valueOpShare * visible.valueOps);
  }
  /// Of a block, GEMMs at the peak.
  double gemmSeconds(int ofHead, int ofValue) const {
    return 2 * elements() *
           (ofHead * double(problem.attention.headDim) +
            ofValue * double(problem.attention.valueDim)) /
           flops();
  }
  VisibleBlocks blocksOf(TilesOf side, double tileRows, double blockColumns) const {
    const double all = std::ceil(
        double(side == TilesOf::queries ? problem.attention.keys : problem.attention.queries) /
        blockColumns);
    return visible.hasMasks ? visibleBlocks(kernel, scores, problem.attention, int64_t(tileRows),
                                            int64_t(blockColumns), side)
                            : VisibleBlocks{.mean = all, .most = all, .mixed = 0};
  }
  double mixedShare() const { return visible.hasTables ? tableShare : maskShare; }
};

/// What tiles wait for their semaphores: those of a head that begin at a time begin with the same
/// block of queries, each a turn behind the one in front. Under masks later ones see less, and
/// blocks that end early take others: half of it stays.
double orderSeconds(const Priced &priced, double keyTiles, double parts, bool areEqual,
                    double turn) {
  const Sm90AttentionBackwardKnobs &knobs = priced.knobs;
  const double slots = double(priced.device.multiprocessors),
               together =
                   std::min(double(knobs.headGroup), double(priced.problem.groups()) * parts),
               atOnce = std::min(keyTiles, std::ceil(slots / together));
  return (atOnce - 1) * turn * (areEqual ? 1 : 0.5);
}

double togetherSeconds(const Priced &priced) {
  const AttentionProblem &problem = priced.problem.attention;
  const Sm90AttentionBackwardKnobs &knobs = priced.knobs;
  double blockSeconds = priced.gemmSeconds(3, 2) * (1 + priced.beside());
  if (knobs.tileQueries < 128) blockSeconds *= narrowFactor;
  blockSeconds += priced.dropping(dropoutSeconds) + priced.loading();
  // A sum warp adds the gradient of a block beside the GEMMs of the next one.
  blockSeconds =
      std::max(blockSeconds, 4.0 * knobs.tileQueries * double(problem.headDim) / sumBandwidth);

  const double keyTiles = std::ceil(double(problem.keys) / knobs.tileKeys),
               queryTiles = std::ceil(double(problem.queries) / knobs.tileQueries),
               parts = double(sm90AttentionBackwardGroupParts(priced.problem, knobs)),
               heads = double(problem.headsOfGroup) / parts;
  const VisibleBlocks seen = priced.blocksOf(TilesOf::queries, knobs.tileQueries, knobs.tileKeys);
  const auto tileTime = [&](double keyBlocks) {
    const double ofKeyTile = keyBlocks * queryTiles / keyTiles * heads;
    return ofKeyTile * blockSeconds + tileSeconds + (parts > 1 ? partSeconds : 0);
  };
  const double mixed = priced.mixedShare() * seen.mixed;
  const double slots = double(priced.device.multiprocessors),
               tiles = double(sm90AttentionBackwardTiles(priced.problem, knobs));
  // Tiles that few queries see fill the gaps that others leave; the longest ones begin first.
  const double waves = seen.mean < seen.most ? tiles / slots + 0.3 : std::ceil(tiles / slots);
  const double longest = tileTime(seen.most + mixed);
  const bool isOrdered = knobs.sums == GradientSums::ordered;
  double all = waves * tileTime(seen.mean + mixed);
  if (seen.mean < seen.most && isOrdered && !priced.visible.hasTables)
    all *=
        1 + stairShare / (keyTiles * keyTiles) *
                std::max(0.0, std::min(std::ceil(slots / double(knobs.headGroup)), 2 * keyTiles) -
                                  freeStairs);
  // The longest of the last heads that are taken together begin when what is before them is done
  // (H100: 96 heads on 6, 37 tiles each, those of one after those of another: 4.77 ms).
  const double groups = double(priced.problem.groups()) * parts,
               last = std::fmod(groups - 1, double(knobs.headGroup)) + 1;
  if (seen.mean < seen.most)
    all =
        std::max(all, (1 - last / groups) * tiles / slots * tileTime(seen.mean + mixed) + longest);
  // Under a table others wait for the semaphores of the longest (H100: a global tile of 16.5% of
  // all scores, 238 us, of which it takes 94).
  all = priced.visible.hasTables && isOrdered ? all + longest - tileTime(seen.mean + mixed)
                                              : std::max(all, longest);
  const bool areEqual = seen.mean == seen.most;
  if (!priced.visible.hasTables && tiles <= slots)
    all += orderSeconds(priced, keyTiles, parts, areEqual, bareSemaphoreSeconds) *
           (isOrdered ? 1 : collisionShare);
  else if (!priced.visible.hasTables && !isOrdered)
    all -= std::min(orderSeconds(priced, keyTiles, parts, areEqual, semaphoreSeconds),
                    mostOrderShare * all);
  // The last tile of the last keys adds up their parts when all others are done.
  const double columns = double(problem.headDim + problem.valueDim);
  if (parts > 1)
    all += parts * columns * addSecondsOfColumn +
           tiles * knobs.tileKeys * columns * sizeof(float) / priced.device.copyBandwidth;
  // Each group of tiles of keys that pass together, but for the first, reads the queries again.
  const double inFlight = double(sm90AttentionBackwardHeadsInFlight(priced.problem, knobs)),
               elementBytes = double(sizeOf(problem.operandType)),
               loaded = double(problem.queries) * columns * elementBytes,
               summed = double(problem.queries) * double(problem.headDim) * sizeof(float);
  if (inFlight * (loaded + summed) <= bytesInL2) return all;
  const double together = std::max(slots * heads / inFlight, 1.0);
  const double again = std::max(seen.mean / together - 1, 0.0);
  const double factor = heads > 1 ? missFactor : missFactorOfOneHead;
  return all + factor * again * double(problem.heads) * (loaded + 2 * summed) /
                   priced.device.copyBandwidth;
}

/// Of gradients apart, what a part of the gradients of a tile's keys adds to it: it is stored and
/// counted, and read again by the last one of the same keys (as of gradients together).
double partOfTile(const Priced &priced) {
  const double columns =
      double(priced.problem.attention.headDim + priced.problem.attention.valueDim);
  return partSeconds * priced.knobs.tileKeys / 128 + columns * addSecondsOfColumn;
}

/// A kind of tiles of gradients apart: on which side, and GEMMs of headDim and of valueDim columns.
struct ApartTiles {
  TilesOf side;
  int ofHead, ofValue;
};
constexpr ApartTiles apartTiles[] = {{TilesOf::keys, 2, 2}, {TilesOf::queries, 2, 1}},
                     singleTiles[] = {
                         {TilesOf::keys, 2, 1}, {TilesOf::keys, 1, 1}, {TilesOf::queries, 2, 1}};

/// Four GEMMs of tiles of keys and three of tiles of queries; single, three of tiles of keys, two
/// of tiles of values and three of tiles of queries.
double apartSeconds(const Priced &priced) {
  const AttentionProblem &problem = priced.problem.attention;
  const Sm90AttentionBackwardKnobs &knobs = priced.knobs;
  const double beside = apartBesideShare * priced.beside() * priced.gemmSeconds(3, 2),
               loads = double(knobs.tileQueries) * double(problem.headDim + problem.valueDim) *
                       double(sizeOf(problem.operandType)) / apartLoadBandwidth;
  const bool isSingle = knobs.gradients == BackwardGradients::single;
  // Of single ones nothing hides that a tile's rows are loaded when those before them are stored.
  const double tileSeconds =
      apartTileSeconds + (isSingle ? loads * knobs.tileKeys / knobs.tileQueries : 0);
  double all = 0, longest = 0, mean = 0, tail = 0;
  for (const auto &[side, ofHead, ofValue] :
       isSingle ? std::span<const ApartTiles>(singleTiles) : apartTiles) {
    const bool isOfKeys = side == TilesOf::keys;
    const double products = (priced.gemmSeconds(ofHead, ofValue) + beside) *
                            (isSingle ? singleFactor : 1) *
                            (knobs.tileQueries < 64 ? apartNarrowFactor : 1);
    const double blockSeconds =
        std::max(loads, products + priced.dropping(apartDropoutSeconds) + priced.loading());
    const double parts =
                     isOfKeys ? double(sm90AttentionBackwardGroupParts(priced.problem, knobs)) : 1,
                 heads = isOfKeys ? double(problem.headsOfGroup) / parts : 1,
                 partTime = parts > 1 ? partOfTile(priced) : 0;
    const VisibleBlocks seen = priced.blocksOf(side, knobs.tileKeys, knobs.tileQueries);
    const double mixed = priced.mixedShare() * seen.mixed;
    const auto tileTime = [&](double blocks) {
      return (blocks + mixed) * heads * blockSeconds + tileSeconds + partTime;
    };
    const double rows = double(isOfKeys ? problem.keys : problem.queries),
                 tiles = std::ceil(rows / knobs.tileKeys) * parts *
                         double(isOfKeys ? priced.problem.groups() : problem.heads);
    all += tiles * tileTime(seen.mean) / double(priced.device.multiprocessors);
    mean = std::max(mean, tileTime(seen.mean));
    longest = std::max(longest, tileTime(seen.most));
    // The last tile of the last keys adds up their parts when all others are done; what L2 does not
    // hold of them is written and read.
    const double columns = double(problem.headDim + problem.valueDim),
                 bytes = parts > 1 ? tiles * knobs.tileKeys * columns * sizeof(float) : 0;
    tail += (parts - 1) * columns * addSecondsOfColumn +
            2 * std::max(bytes - bytesInL2, 0.0) / priced.device.copyBandwidth;
  }
  // Long tiles begin first.
  const double alone = sm90AttentionBackwardResidents(knobs) > 1 ? apartSharedFactor : 1;
  return std::max(all + apartLastShare * mean, longest * alone) + tail;
}

}  // namespace

Cost sm90AttentionBackwardCost(const Kernel &kernel, const Configuration &configuration,
                               const Sm90AttentionBackwardKnobs &knobs, const Device &device) {
  const Expected<AttentionBackwardRegion, Reason> &recognised = attentionBackwardRegion(kernel);
  if (!recognised)
    throw Error::unsupported("kernel '{}': {}", kernel.name, recognised.error().text);
  const Expected<AttentionBackwardProblem> &answer =
      keptAttentionBackwardProblem(kernel, *recognised, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().what());
  const AttentionProblem &problem = answer->attention;
  const AttentionRegion scores = attentionOf(kernel, *recognised);
  const Priced priced{.kernel = kernel,
                      .problem = *answer,
                      .scores = scores,
                      .knobs = knobs,
                      .device = device,
                      .visible = visibleScores(kernel, scores, problem),
                      .hasDropout = recognised->hasDropout};
  const bool isApart = knobs.gradients != BackwardGradients::together;
  const double tensorSeconds = (isApart ? apartSeconds(priced) : togetherSeconds(priced)) +
                               storedScoreSeconds(*answer, device);

  // Sums of the queries' gradient are read again, and rounded, when all tiles are done.
  const double sums = double(problem.heads) * double(problem.queries) * double(problem.headDim);
  const double roundingSeconds =
      !isApart && problem.keys > knobs.tileKeys
          ? sums * (4 + double(sizeOf(problem.operandType))) / device.copyBandwidth
          : 0;
  const double bytes = double(kernel.necessaryBytes());
  const double memorySeconds = bytes / device.copyBandwidth;
  const double busySeconds = std::max(tensorSeconds, memorySeconds);
  return {.seconds = device.launchSeconds + startSeconds + busySeconds + roundingSeconds,
          .bytesMoved = int64_t(bytes),
          .bound = memorySeconds > tensorSeconds        ? Bound::memory
                   : device.launchSeconds > busySeconds ? Bound::launch
                                                        : Bound::tensor};
}

}  // namespace weft
