// Fused attention from sm_80 on: for every query the softmax of its scores times the values,
// without scores in memory. A block has one tile of queries of one head, 16 a warp, and folds
// (maximum, sum, output) over the tiles of keys that masks do not exclude:
//
//    copies   keys and values of later tiles ──cp.async──> ring of stages
//    a tile   S = Q K^T ──score ops──> maxima ──exponentials──> P ──> O += P V
//
// Scores and P stay in the registers of the warp: accumulators of one mma.sync lie as the left
// operand of the next. A row that masks exclude throughout gives zeros, and -inf as the logarithm
// of its sum.
//
// Blocks of one head are neighbours and share its keys and values in L2. The last queries come
// first: under a causal mask they take longest.
#pragma once

#include "weft/fragment.cuh"
#include "weft/online_softmax.cuh"
#include "weft/sm80_attention_tiles.cuh"
#include "weft/tile_coverage.cuh"

namespace weft::sm80 {

/// The arguments by name: tensors, the places of a head in them, and the functions of score ops.
template <typename T, typename PlacesOfHead, typename Score = UnchangedScore,
          typename ScoreWithoutMasks = UnchangedScore, typename Coverage = FullCoverage>
struct AttentionArgs {
  const T *q, *k, *v;
  T *output;
  PlacesOfHead placesOfHead;
  float *logSums = nullptr;  // nothing: not stored
  Score score = {};
  ScoreWithoutMasks scoreWithoutMasks = {};
  Coverage coverage = {};
};

/// The queries of a block: all inside the tensor.
struct AttentionPlace {
  int head, firstQuery, lastQuery;
};

/// S = Q K^T of a warp. `loadQueries`: 16 columns of its queries.
template <AttentionShape shape, typename T, int count, typename LoadQueries>
__device__ __forceinline__ void multiplyKeys(float (&scores)[count], const LoadQueries &loadQueries,
                                             SharedAddress keys) {
#pragma unroll
  for (int block = 0; block < AttentionRows<shape.headDim>::blocks; ++block) {
    unsigned q[4];
    loadQueries(q, block);
#pragma unroll
    for (int s = 0; s < count; s += 8) {
      unsigned k[4];
      loadRowBlock<shape.headDim, false>(k, keys, s * 2, block);
      multiply(static_cast<T *>(nullptr), scores[s], scores[s + 1], scores[s + 2], scores[s + 3], q,
               k[0], k[1]);
      multiply(static_cast<T *>(nullptr), scores[s + 4], scores[s + 5], scores[s + 6],
               scores[s + 7], q, k[2], k[3]);
    }
  }
}

/// Applies the score ops. `row`, `column`: of the lane's first score. isClipped: keys from the
/// tensor's end on are excluded.
template <AttentionShape shape, bool isClipped, int count, typename Score>
__device__ __forceinline__ void applyScoreOps(float (&scores)[count], const Score &score, int head,
                                              int row, int column) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int query = row + rowInFragment(i % 8),
              key = column + i / 8 * 16 + columnInFragment(i % 8);
    float &s = scores[i];
    s = score(shape.scalesLast ? s : s * shape.scale, head, query, key);
    if (isClipped && key >= shape.keys) s = negativeInfinity;
  }
}

/// O += P V. `p`: 16 keys a row of words.
template <AttentionShape shape, typename T, int count, int keyBlocks>
__device__ __forceinline__ void multiplyValues(float (&output)[count],
                                               const unsigned (&p)[keyBlocks][4],
                                               SharedAddress values) {
#pragma unroll
  for (int block = 0; block < keyBlocks; ++block) {
#pragma unroll
    for (int o = 0; o < count; o += 8) {
      unsigned v[4];
      loadColumnBlock<shape.valueDim>(v, values, block * 16, o / 8);
      multiply(static_cast<T *>(nullptr), output[o], output[o + 1], output[o + 2], output[o + 3],
               p[block], v[0], v[1]);
      multiply(static_cast<T *>(nullptr), output[o + 4], output[o + 5], output[o + 6],
               output[o + 7], p[block], v[2], v[3]);
    }
  }
}

/// Divides by the sums and stores the output by way of shared memory, in rows, which all threads
/// have read; and the logarithms of the sums.
template <AttentionShape shape, AttentionTile tile, typename T, int count>
__device__ __forceinline__ void storeOutput(const float (&accumulators)[count],
                                            OnlineSoftmax &softmax, float factor, T *output,
                                            float *logSums, const AttentionPlace &at,
                                            SharedAddress shared) {
  using P = AttentionConfig<shape, tile>;
  using Rows = typename P::ValueRows;
  const int lane = threadIdx.x % 32, ownRow = threadIdx.x / 32 * 16 + lane / 4;
  softmax.joinSums();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = at.firstQuery + ownRow + half * 8;
    if (logSums != nullptr && lane % 4 == 0 && query <= at.lastQuery)
      logSums[query * shape.rowLogSums] = softmax.logSum(half, factor);
  }
  const float scaling[2] = {softmax.scaling(0), softmax.scaling(1)};
#pragma unroll
  for (int o = 0; o < count; o += 2) {
    const int e = o % 8, row = ownRow + rowInFragment(e);
    storeShared(shared + Rows::placeOf(row, o / 8 * 2 + columnInFragment(e) / 8) + lane % 4 * 4,
                packPair(static_cast<T *>(nullptr), accumulators[o] * scaling[e / 2 % 2],
                         accumulators[o + 1] * scaling[e / 2 % 2]));
  }
  ptx::barrier();
  constexpr int chunks = shape.valueDim / chunk;
  for (int piece = threadIdx.x; piece < tile.queries * chunks; piece += P::threads) {
    const int row = piece / chunks, column = piece % chunks;
    if (shape.queries % tile.queries != 0 && at.firstQuery + row > at.lastQuery) break;
    const SharedAddress from = shared + Rows::placeOf(row, column);
    T *to = output + (at.firstQuery + row) * shape.rowOutput + column * chunk;
    if constexpr (shape.isOutputAligned) {
      unsigned words[4];
      loadShared(words, from);
      *reinterpret_cast<Packed<unsigned, 4> *>(to) = {words[0], words[1], words[2], words[3]};
    } else {
      for (int e = 0; e < chunk; ++e) to[e] = T{loadSharedElement(from + e * elementBytes)};
    }
  }
}

/// The whole kernel; launched with AttentionConfig::threads and ::sharedBytes, a block for every
/// tile of queries of every head.
template <typename T, AttentionShape shape, AttentionTile tile, typename PlacesOfHead,
          typename Score, typename ScoreWithoutMasks, typename Coverage>
__device__ __forceinline__ void attention(
    const AttentionArgs<T, PlacesOfHead, Score, ScoreWithoutMasks, Coverage> &args) {
  using P = AttentionConfig<shape, tile>;
  constexpr float factor = (shape.scalesLast ? shape.scale : 1.0f) * 1.44269504f;
  const SharedAddress queryTile = dynamicShared(), stages = queryTile + P::queryBytes;
  const int firstQuery = (P::queryTiles - 1 - int(blockIdx.x) % P::queryTiles) * tile.queries;
  const AttentionPlace at{int(blockIdx.x) / P::queryTiles, firstQuery,
                          smaller(firstQuery + tile.queries, shape.queries) - 1};
  const HeadPlaces places = args.placesOfHead(at.head);
  const int lane = threadIdx.x % 32, warpRow = threadIdx.x / 32 * 16;

  const auto coverageOf = [&](int keyTile) {
    const int firstKey = keyTile * tile.keys;
    return args.coverage(at.head, at.firstQuery, at.lastQuery, firstKey,
                         smaller(firstKey + tile.keys, shape.keys) - 1);
  };
  const auto next = [&](int keyTile) {
    do ++keyTile;
    while (keyTile < P::keyTiles && coverageOf(keyTile) == TileCoverage::empty);
    return keyTile;
  };
  const auto copy = [&](int keyTile, int stage) {
    if (keyTile < P::keyTiles) {
      const SharedAddress to = stages + stage * P::stageBytes;
      const int firstKey = keyTile * tile.keys;
      copyPositions<tile.keys, shape.headDim, P::threads, shape.rowK>(to, args.k + places.k,
                                                                      firstKey, shape.keys);
      copyPositions<tile.keys, shape.valueDim, P::threads, shape.rowV>(
          to + P::keyBytes, args.v + places.v, firstKey, shape.keys);
    }
    commitCopies();
  };

  copyPositions<tile.queries, shape.headDim, P::threads, shape.rowQ>(queryTile, args.q + places.q,
                                                                     at.firstQuery, shape.queries);
  int toCopy = -1;
#pragma unroll
  for (int stage = 0; stage < tile.stages - 1; ++stage) copy(toCopy = next(toCopy), stage);
  waitForCopies<tile.stages - 2>();
  ptx::barrier();
  unsigned kept[P::keepsQueries ? P::HeadRows::blocks : 1][4];
#pragma unroll
  for (int block = 0; block < (P::keepsQueries ? P::HeadRows::blocks : 0); ++block)
    loadRowBlock<shape.headDim, true>(kept[block], queryTile, warpRow, block);
  const auto loadQueries = [&](unsigned(&words)[4], int block) {
    if constexpr (P::keepsQueries) {
#pragma unroll
      for (int word = 0; word < 4; ++word) words[word] = kept[block][word];
    } else {
      loadRowBlock<shape.headDim, true>(words, queryTile, warpRow, block);
    }
  };

  float output[P::outputs] = {};
  OnlineSoftmax softmax;
  const int row = at.firstQuery + warpRow + lane / 4, column = lane % 4 * 2;
  int stage = 0;
#pragma unroll 1
  for (int keyTile = next(-1); keyTile < P::keyTiles; keyTile = next(keyTile)) {
    waitForCopies<tile.stages - 2>();
    ptx::barrier();  // the tile has landed, and the one before it has been read by all
    copy(toCopy = next(toCopy), stage == 0 ? tile.stages - 1 : stage - 1);
    const SharedAddress keys = stages + stage * P::stageBytes;
    stage = stage + 1 == tile.stages ? 0 : stage + 1;
    float scores[P::scores] = {};
    multiplyKeys<shape, T>(scores, loadQueries, keys);
    constexpr bool hasPart = shape.keys % tile.keys != 0;
    const int firstColumn = keyTile * tile.keys + column;
    if ((hasPart && keyTile == P::keyTiles - 1) || coverageOf(keyTile) != TileCoverage::full)
      applyScoreOps<shape, hasPart>(scores, args.score, at.head, row, firstColumn);
    else applyScoreOps<shape, false>(scores, args.scoreWithoutMasks, at.head, row, firstColumn);
    float older[2];
    softmax.add(scores, factor, older);
#pragma unroll
    for (int o = 0; o < P::outputs; ++o) output[o] *= older[o / 2 % 2];
    unsigned p[tile.keys / 16][4];
    packExponentials<T, P::scores>(p, scores);
    multiplyValues<shape, T>(output, p, keys + P::keyBytes);
  }
  waitForCopies<0>();
  ptx::barrier();
  storeOutput<shape, tile>(output, softmax, factor, args.output + places.output,
                           args.logSums == nullptr ? nullptr : args.logSums + places.logSums, at,
                           queryTile);
}

}  // namespace weft::sm80
