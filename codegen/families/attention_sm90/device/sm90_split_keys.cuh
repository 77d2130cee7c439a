// Fused attention whose keys several blocks share: where tiles of queries are few and keys many,
// they alone would leave most multiprocessors without work.
//
//    split 0        keys 0, S, 2S, ...  ──> maximum, sum, output ──> workspace ─┐
//    split 1        keys 1, S + 1, ...  ──> maximum, sum, output ──> workspace ─┤
//    the last one to arrive of S        <── those of all, in the order of splits ┘
//                                       ──> output
//
// Keys are counted in blocks here; splits take them in turn, so that all see as many of those that
// a mask leaves. To tiles and tensor maps a split is a head: heads of a group that are packed stay
// neighbours,
//
//    head of a tile = (group * S + split) * packedHeads + head of the group
//
// and divisors of a HeadMap are multiplied by S. Who asks for the coverage or for a page of such a
// head is answered for the head that it is of, and other splits' blocks are empty. No block waits
// for another one, and results have the same bits in every launch.
#pragma once

#include "weft/grid_memory.cuh"
#include "weft/sm90_attention.cuh"
#include "weft/vector.cuh"

namespace weft::sm90 {

struct SplitPlace {
  int head, split;
};
template <int packedHeads, int splits>
__device__ __forceinline__ SplitPlace splitPlace(int headOfTile) {
  const int group = headOfTile / packedHeads;
  return {group / splits * packedHeads + headOfTile % packedHeads, group % splits};
}

/// What a split sees of the blocks of keys.
template <AttentionTile tile, int splits, typename Coverage>
struct SplitCoverage {
  Coverage ofHead;
  __device__ __forceinline__ TileCoverage operator()(int head, int firstQuery, int lastQuery,
                                                     int firstKey, int lastKey) const {
    const SplitPlace place = splitPlace<tile.packedHeads, splits>(head);
    if (firstKey / tile.keys % splits != place.split) return TileCoverage::empty;
    return ofHead(place.head, firstQuery, lastQuery, firstKey, lastKey);
  }
};
template <AttentionTile tile, int splits, typename Coverage>
__device__ __forceinline__ SplitCoverage<tile, splits, Coverage> splitCoverage(
    const Coverage &coverage) {
  return {coverage};
}

/// Rows of a block that some split sees.
template <int rows, AttentionTile tile, int splits, typename Coverage>
__device__ __forceinline__ int seenRows(const SplitCoverage<tile, splits, Coverage> &coverage,
                                        int firstHead, int heads, int firstQuery, int lastQuery,
                                        int firstKey, int keys) {
  return weft::seenRows<rows>(coverage.ofHead, splitPlace<tile.packedHeads, splits>(firstHead).head,
                              heads, firstQuery, lastQuery, firstKey, keys);
}

/// Pages of keys (AttentionArgs::pageOf).
template <AttentionTile tile, int splits, typename Pages>
struct SplitPages {
  Pages ofHead;
  __device__ __forceinline__ int operator()(int head, int key) const {
    return ofHead(splitPlace<tile.packedHeads, splits>(head).head, key);
  }
};
template <AttentionTile tile, int splits, typename Pages>
__device__ __forceinline__ SplitPages<tile, splits, Pages> splitPages(const Pages &pages) {
  return {pages};
}

/// What each thread summed over the keys of a split: four floats of its statistics before those of
/// its output.
template <AttentionProblem problem, AttentionTile tile, int splits>
struct SplitConfig {
  using C = AttentionConfig<problem, tile>;
  static constexpr int parts = C::tiles / splits * C::rowParts,  // 64 rows each
      vectors = 1 + C::valueColumns / 8;
  using Sums = float[splits][vectors][warpgroup][4];  // of a part
  static constexpr Offset bytes = static_cast<Offset>(parts) * sizeof(Sums);
  static_assert(C::tiles % splits == 0);
};

/// How many splits of each part have arrived: device memory of a module, so one launch of it at a
/// time; zero at load and again after every launch.
template <AttentionProblem problem, AttentionTile tile, int splits>
struct SplitArrivals {
  unsigned of[SplitConfig<problem, tile, splits>::parts];
};

/// Where sums of all parts are, in a workspace of SplitConfig::bytes that a launch finds undefined;
/// and who has arrived.
template <AttentionProblem problem, AttentionTile tile, int splits>
struct SplitPartials {
  typename SplitConfig<problem, tile, splits>::Sums *of;  // aligned to 16 bytes
  unsigned *arrived;
  __device__ __forceinline__ SplitPartials(float *sums,
                                           SplitArrivals<problem, tile, splits> &arrivals)
      : of(reinterpret_cast<decltype(of)>(sums)), arrived(arrivals.of) {}
};

/// The arguments of attention() with those partial sums.
template <typename Args, int splitCount, typename Partials>
struct SplitArgs : Args {
  static constexpr int splits = splitCount;
  Partials partials;
};

/// Writes what this thread summed.
template <int vectors, int count>
__device__ __forceinline__ void storeSplit(float (&to)[vectors][warpgroup][4], int thread,
                                           const OnlineSoftmax &softmax,
                                           const float (&output)[count]) {
  static_assert(vectors == 1 + count / 4);
  storeVector<4>(&to[0][thread][0], Vec<float, 4>{{softmax.maximum[0], softmax.maximum[1],
                                                   softmax.sum[0], softmax.sum[1]}});
#pragma unroll
  for (int i = 0; i < count; i += 4)
    storeVector<4>(&to[1 + i / 4][thread][0],
                   Vec<float, 4>{{output[i], output[i + 1], output[i + 2], output[i + 3]}});
}

/// Adds what a thread of a split summed of the same rows: both against the larger maximum. factor:
/// as OnlineSoftmax::add has it.
template <int vectors, int count>
__device__ __forceinline__ void joinSplit(const float (&from)[vectors][warpgroup][4], int thread,
                                          float factor, OnlineSoftmax &softmax,
                                          float (&output)[count]) {
  float statistics[4], own[2], others[2];
  ptx::loadFromGrid(statistics, &from[0][thread][0]);
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float largest = ptx::maximum(softmax.maximum[row], statistics[row]);
    const float finite = finiteMaximum(largest);
    own[row] = rescaling(softmax.maximum[row], finite, factor);
    others[row] = rescaling(statistics[row], finite, factor);
    softmax.maximum[row] = largest;
    softmax.sum[row] = softmax.sum[row] * own[row] + statistics[2 + row] * others[row];
  }
  // As many in flight as registers hold beside the output.
  constexpr int inFlight = smaller(count / 4, 16);
#pragma unroll
  for (int first = 0; first < count / 4; first += inFlight) {
    float values[inFlight][4];
#pragma unroll
    for (int i = 0; i < inFlight; ++i)
      if (first + i < count / 4) ptx::loadFromGrid(values[i], &from[1 + first + i][thread][0]);
#pragma unroll
    for (int i = 0; i < inFlight * 4; ++i)
      if (first * 4 + i < count)
        output[first * 4 + i] =
            output[first * 4 + i] * own[i / 2 % 2] + values[i / 4][i % 4] * others[i / 2 % 2];
  }
}

/// Consumers of attention() whose arguments have splits: the loop of the others, but in no order
/// and with rows of one consumer each, and the sums of all splits before the output is stored.
template <typename T, AttentionProblem problem, AttentionTile tile, typename Args>
requires(Args::splits > 1) __device__ __forceinline__
    void consumeAttention(AttentionShared<problem, tile> shared, const Args &args, int consumer) {
  using C = AttentionConfig<problem, tile>;
  static_assert(!tile.isOrdered && tile.keyConsumers == 0 && !problem.isPacked);
  static_assert(C::consumers <= 2, "each has a word of shared memory");
  static_assert(DropsNothing<decltype(args.dropout)>);
  constexpr int splits = Args::splits;
  constexpr T *type = nullptr;
  constexpr float log2e = 1.44269504088896f;
  constexpr bool scalesFirst = !IsUnchanged<decltype(args.scoreWithoutMasks)>;
  const float factor = scalesFirst ? log2e : args.scale * log2e;
  const int thread = threadIdx.x % warpgroup, warp = thread / 32, lane = thread % 32;
  const bool isLeader = thread == 0;
  const SharedAddress arrivals = shared.tileNumber(2) + consumer * 4;
  unsigned tiles = 0, keyBlocks = 0;  // passed before
#pragma unroll 1
  while (true) {
    const StageOfPass<2> place(tiles);
    const StageOfPass<tile.queryStages> query(tiles);
    wait(shared.tileFull(place.stage), place.parity);
    const int index = __shfl_sync(~0u, loadWord(shared.tileNumber(place.stage)), 0);
    if (lane == 0) arrive(shared.tileEmpty(place.stage));
    if (index >= C::tiles) break;
    const AttentionTilePlace at = attentionTile<problem, tile>(index, args.order);
    const SplitPlace own = splitPlace<tile.packedHeads, splits>(at.head);
    KeyBlocks<problem, tile, decltype(args.coverage)> blocks{args.coverage, at.head, at.firstQuery,
                                                             problem.keys};
    const int firstOfPart = at.firstQuery + consumer * C::queriesOfPart,
              ownRow = warp * 16 + lane / 4;
    // The first of this thread's two rows, or the second.
    const auto placeOf = [&](int half) -> RowPlace {
      if constexpr (tile.packedHeads == 1) return {own.head, firstOfPart + ownRow + half * 8};
      else return placeOfPackedRow<tile.packedHeads>(own.head, firstOfPart, ownRow + half * 8);
    };
    const auto stageOf = [&](unsigned pass) { return blockStage<C::stagesOfBuffer>(0, pass); };

    float output[C::valueColumns / 2];
#pragma unroll
    for (int i = 0; i < C::valueColumns / 2; ++i) output[i] = 0;
    OnlineSoftmax softmax;
    wait(shared.qFull(query.stage), query.parity);
    if (blocks.advance()) {
      float scores[tile.keys / 2], older[2];
      unsigned exponentials[tile.keys / 16][4];
      const SharedAddress q = shared.q(query.stage) + consumer * subtileBytes;

      const auto issueScores = [&](int stage) {
        fenceWgmma();
#pragma unroll
        for (int step = 0; step < C::headSteps; ++step)
          wgmma<false, false>(
              type, type, scores,
              describeOperand(q + step / 4 * tile.queries * rowBytes + step % 4 * 32, 0),
              describeOperand(shared.k(stage) + step / 4 * tile.keys * rowBytes + step % 4 * 32, 0),
              step > 0);
        commitWgmma();
      };
      const auto issueOutput = [&](int stage) {
        fenceWgmma();
#pragma unroll
        for (int step = 0; step < tile.keys / 16; ++step)
          wgmma<true>(type, type, output, exponentials[step],
                      describeOperand(shared.v(stage) + step * 16 * rowBytes, tile.keys * rowBytes),
                      true);
        commitWgmma();
      };
      const auto applyScore = [&](int block, bool isMixed) {
        const auto each = [&](const auto &function) {
#pragma unroll
          for (int i = 0; i < tile.keys / 2; ++i) {
            const RowPlace row = placeOf(i / 2 % 2);
            scores[i] =
                function(scores[i], row, block * tile.keys + i / 4 * 8 + lane % 4 * 2 + i % 2);
            asm volatile("" : "+f"(scores[i]));  // one after the other, for few registers
          }
        };
        const float scale = scalesFirst ? args.scale : 1.0f;
        if (isMixed) {
          each([&](float score, const RowPlace &row, int column) {
            if constexpr (!IsUnchanged<decltype(args.score)>)
              score = args.score(score * scale, row.head, row.query, column);
            const bool isKey = problem.keys % tile.keys == 0 || column < problem.keys;
            return isKey ? score : negativeInfinity;
          });
        } else if constexpr (scalesFirst) {
          each([&](float score, const RowPlace &row, int column) {
            return args.scoreWithoutMasks(score * scale, row.head, row.query, column);
          });
        }
      };

      {
        const BlockStage key = stageOf(keyBlocks++);
        wait(shared.kFull(key.stage), key.parity);
        issueScores(key.stage);
        waitForWgmma<0>();
        fenceAccumulators(scores);
        if (isLeader) arrive(shared.kEmpty(key.stage));
      }
      applyScore(blocks.index, blocks.isMixed);
      softmax.add(scores, factor, older);
      packExponentials<T>(exponentials, scores);
#pragma unroll 1
      while (blocks.advance()) {
        const BlockStage value = stageOf(keyBlocks - 1), key = stageOf(keyBlocks++);
        wait(shared.kFull(key.stage), key.parity);
        issueScores(key.stage);
        wait(shared.vFull(value.stage), value.parity);
        issueOutput(value.stage);
        waitForWgmma<1>();
        fenceAccumulators(scores);
        if (isLeader) arrive(shared.kEmpty(key.stage));
        applyScore(blocks.index, blocks.isMixed);
        softmax.add(scores, factor, older);
        waitForWgmma<0>();
        fenceAccumulators(output);
        if (isLeader) arrive(shared.vEmpty(value.stage));
#pragma unroll
        for (int i = 0; i < C::valueColumns / 2; ++i) output[i] *= older[i / 2 % 2];
        packExponentials<T>(exponentials, scores);
      }
      if (!tile.staysInQ && isLeader) arrive(shared.qEmpty(query.stage));
      const BlockStage value = stageOf(keyBlocks - 1);
      wait(shared.vFull(value.stage), value.parity);
      issueOutput(value.stage);
      softmax.joinSums();
      waitForWgmma<0>();
      fenceAccumulators(output);
      if (isLeader) arrive(shared.vEmpty(value.stage));
    } else if (!tile.staysInQ && isLeader) {
      arrive(shared.qEmpty(query.stage));
    }
    ++tiles;

    const int part =
        (own.head / tile.packedHeads * C::queryTiles + at.firstQuery / C::queriesOfTile) *
            C::rowParts +
        consumer;
    auto &ofRows = args.partials.of[part];
    storeSplit(ofRows[own.split], thread, softmax, output);
    synchronize(consumerBarrier + consumer, warpgroup);
    constexpr unsigned last = splits - 1;
    if (isLeader) storeWord(arrivals, int(ptx::arrive(&args.partials.arrived[part], last)));
    synchronize(consumerBarrier + consumer, warpgroup);
    if (unsigned(loadWord(arrivals)) != last) {
      if (tile.staysInQ && isLeader) arrive(shared.qEmpty(query.stage));
      continue;
    }
    softmax = {};
#pragma unroll
    for (int i = 0; i < C::valueColumns / 2; ++i) output[i] = 0;
#pragma unroll 1
    for (int split = 0; split < splits; ++split)
      joinSplit(ofRows[split], thread, factor, softmax, output);

    // The last store has read its place.
    if (isLeader) waitForStoresToRead<0>();
    synchronize(consumerBarrier + consumer, warpgroup);
    const SharedAddress staged = shared.output() + consumer * subtileBytes;
    const float scaling[2] = {softmax.scaling(0), softmax.scaling(1)};
#pragma unroll
    for (int block = 0; block < C::valueColumns / 16; ++block) {
      float values[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = output[block * 8 + i] * scaling[i / 2 % 2];
      storeFragmentShared<T>(staged + block / 4 * tile.queries * rowBytes +
                                 swizzled(warp * 16 + lane % 16, block % 4 * 2 + lane / 16),
                             values);
    }
    fenceForAsync();
    synchronize(consumerBarrier + consumer, warpgroup);
    if (isLeader) {
      if (firstOfPart < problem.queries)
#pragma unroll
        for (int panel = 0; panel < C::valuePanels; ++panel) {
          const SharedAddress from = staged + panel * tile.queries * rowBytes;
          if constexpr (tile.packedHeads == 1)
            storeHead<problem.output>(args.output, from, panel * 64, firstOfPart, at.head);
          else
            storePackedHeads<problem.output>(args.output, from, panel * 64, firstOfPart, at.head);
        }
      commitStores();
      if constexpr (tile.staysInQ) {
        waitForStoresToRead<0>();
        arrive(shared.qEmpty(query.stage));
      }
    }
    if (args.logSums && lane % 4 == 0)
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const RowPlace place = placeOf(row);
        if (place.query < problem.queries && ownRow + row * 8 < C::usedRows)
          args.logSums[static_cast<Offset>(place.head) * problem.queries + place.query] =
              softmax.logSum(row, factor);
      }
  }
  if (isLeader) waitForStoresToRead<0>();
}

/// The whole kernel. `problem.heads` and the divisors of its maps count splits; args.coverage and
/// args.pageOf come of splitCoverage() and splitPages().
template <typename T, AttentionProblem problem, AttentionTile tile, int splits, typename Args>
__device__ __forceinline__ void attentionInSplits(
    const SplitPartials<problem, tile, splits> &partials, const Args &args) {
  attention<T, problem, tile>(
      SplitArgs<Args, splits, SplitPartials<problem, tile, splits>>{args, partials});
}

}  // namespace weft::sm90
