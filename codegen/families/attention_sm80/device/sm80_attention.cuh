// Fused attention from sm_80 on: for every query the softmax of its scores times the values,
// without scores in memory. A block has one tile of queries of one head, 16 a warp, and folds
// (maximum, sum, output) over the tiles of keys that masks do not exclude:
//
//    copies   keys and values of later tiles ──cp.async──> circular buffer of stages
//    a tile   S = Q K^T ──score ops──> maxima ──exponentials──> sums ──dropout──> P ──> O += P V
//
// Scores and P stay in the registers of the warp: accumulators of one mma.sync lie as the left
// operand of the next. A row that masks exclude throughout gives zeros, and -inf as the logarithm
// of its sum.
//
// Blocks of one head are neighbours and share its keys and values in L2. The last queries come
// first: under a causal mask they take longest. Under a block mask those come first that see most
// (sm80_tile_order.cuh).
//
// **Few queries, many keys.** Then keys and values from DRAM are all that takes time, and three
// things keep every multiprocessor loading (AttentionTile):
//
//    packed heads    rows of a tile are the queries of all heads that share keys and values, which
//                    are loaded once for them
//    warps of keys   a tile of 16 or 32 rows has four or two warps for the same rows, each with its
//                    own keys of a tile
//    splits          several blocks share the key tiles of one tile of rows
//
// **Packed tokens.** Rows of a head are then those of its sequence: a block whose first row is
// behind the last token has nothing to do, and keys behind it load as zeros.
//
// Each warp folds (maximum, sum, output) over its keys; these are joined behind the loop, over the
// warps in shared memory and over the splits in device memory (sm80_attention_join.cuh).
#pragma once

#include "weft/attention_dropout.cuh"
#include "weft/fragment.cuh"
#include "weft/online_softmax.cuh"
#include "weft/packed_sequences.cuh"
#include "weft/seen_keys.cuh"
#include "weft/seen_steps.cuh"
#include "weft/sm80_attention_join.cuh"
#include "weft/sm80_attention_pages.cuh"
#include "weft/sm80_attention_tiles.cuh"
#include "weft/sm80_tile_order.cuh"
#include "weft/tile_coverage.cuh"

namespace weft::sm80 {

/// The arguments by name: tensors, the places of a head in them, the functions of score ops, and
/// dropout (head, query, key), which gives of the eight elements of a fragment whether they are
/// kept: Kept<8> (dropout.cuh). Rows of packed heads are not dropped.
template <typename T, typename PlacesOfHead, typename Score = UnchangedScore,
          typename ScoreWithoutMasks = UnchangedScore, typename Coverage = FullCoverage,
          typename Partials = NoPartials, typename Dropout = NoDropout,
          typename Sequences = WholeSequences, typename Order = LastRowsFirst>
struct AttentionArgs {
  const T *q, *k, *v;
  T *output;
  PlacesOfHead placesOfHead;
  float *logSums = nullptr;  // nothing: not stored
  Score score = {};
  ScoreWithoutMasks scoreWithoutMasks = {};
  Coverage coverage = {};
  Partials *partials = nullptr;  // AttentionPartials, of several splits
  const int *table = nullptr;    // of keys and values in pages
  Dropout dropout = {};          // of exponentials, behind their sum
  float keepScale = 1;           // of the output
  Sequences sequences = {};      // of packed tokens: PackedSequences
  Order order = {};              // of blocks
};

/// The tokens of a head's sequence; all keys where none are packed.
template <AttentionShape shape, typename Args>
__device__ __forceinline__ int tokensOf(const Args &args, int head) {
  if constexpr (shape.isPacked) {
    const Sequence sequence = args.sequences.of(head);
    return smaller(sequence.count, args.sequences.rows - sequence.first);
  } else {
    return shape.keys;
  }
}
/// The rows of this block, of packed tokens those that there are.
template <AttentionShape shape, AttentionTile tile>
__device__ __forceinline__ AttentionPlace placeOfBlock(int head, int firstRow, int tokens) {
  const int rows = (shape.isPacked ? tokens : shape.queries) * tile.packedHeads;
  return {head, firstRow, smaller(firstRow + tile.queries, rows) - 1};
}

/// From which key on keys and values are read as zeros: `tokens`, or what no query of a block sees.
template <AttentionShape shape, AttentionTile tile, typename Args>
__device__ __forceinline__ int endOfKeys(const Args &args, const AttentionPlace &at, int tokens) {
  if constexpr (!shape.zeroesUnseen) return tokens;
  else
    return seenKeysOfHeads(args.coverage, at.firstHead, tile.masksDiffer ? tile.packedHeads : 1,
                           at.firstRow / tile.packedHeads, at.lastRow / tile.packedHeads,
                           shape.keys);
}

/// S = Q K^T of a warp. `loadQueries`: 16 columns of its queries; firstKey: its first key in the
/// tile.
template <AttentionShape shape, typename T, int count, typename LoadQueries>
__device__ __forceinline__ void multiplyKeys(float (&scores)[count], const LoadQueries &loadQueries,
                                             SharedAddress keys, int firstKey) {
#pragma unroll
  for (int block = 0; block < AttentionRows<shape.headDim>::blocks; ++block) {
    unsigned q[4];
    loadQueries(q, block);
#pragma unroll
    for (int s = 0; s < count; s += 8) {
      unsigned k[4];
      loadRowBlock<shape.headDim, false>(k, keys, firstKey + s * 2, block);
      multiply(static_cast<T *>(nullptr), scores[s], scores[s + 1], scores[s + 2], scores[s + 3], q,
               k[0], k[1]);
      multiply(static_cast<T *>(nullptr), scores[s + 4], scores[s + 5], scores[s + 6],
               scores[s + 7], q, k[2], k[3]);
    }
  }
}

/// Applies the score ops. `row`, `column`: of the lane's first score. isClipped: keys from the
/// tensor's end on are excluded.
template <AttentionShape shape, AttentionTile tile, bool isClipped, int count, typename Score>
__device__ __forceinline__ void applyScoreOps(float (&scores)[count], const Score &score,
                                              const AttentionPlace &at, int row, int column) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const RowPlace place = placeOfRow<tile>(at, row + rowInFragment(i % 8));
    const int key = column + i / 8 * 16 + columnInFragment(i % 8);
    float &s = scores[i];
    s = score(shape.scalesLast ? s : s * shape.scale, place.head, place.query, key);
    if (isClipped && key >= shape.keys) s = negativeInfinity;
  }
}

/// How much masks leave of a tile of keys, for all rows of a block.
template <AttentionShape shape, AttentionTile tile, typename Coverage>
__device__ __forceinline__ TileCoverage coverageOfTile(const Coverage &coverage,
                                                       const AttentionPlace &at, int keyTile) {
  const int firstKey = keyTile * tile.keys, lastKey = smaller(firstKey + tile.keys, shape.keys) - 1;
  const int firstQuery = at.firstRow / tile.packedHeads, lastQuery = at.lastRow / tile.packedHeads;
  const TileCoverage first = coverage(at.firstHead, firstQuery, lastQuery, firstKey, lastKey);
  if constexpr (tile.masksDiffer) {
#pragma unroll 1
    for (int head = 1; head < tile.packedHeads; ++head)
      if (coverage(at.firstHead + head, firstQuery, lastQuery, firstKey, lastKey) != first)
        return TileCoverage::mixed;
  }
  return first;
}

/// O += P V. `p`: 16 keys a row of words; firstKey: the first of them in the tile.
template <AttentionShape shape, typename T, int count, int keyBlocks>
__device__ __forceinline__ void multiplyValues(float (&output)[count],
                                               const unsigned (&p)[keyBlocks][4],
                                               SharedAddress values, int firstKey) {
#pragma unroll
  for (int block = 0; block < keyBlocks; ++block) {
#pragma unroll
    for (int o = 0; o < count; o += 8) {
      unsigned v[4];
      loadColumnBlock<shape.valueDim>(v, values, firstKey + block * 16, o / 8);
      multiply(static_cast<T *>(nullptr), output[o], output[o + 1], output[o + 2], output[o + 3],
               p[block], v[0], v[1]);
      multiply(static_cast<T *>(nullptr), output[o + 4], output[o + 5], output[o + 6],
               output[o + 7], p[block], v[2], v[3]);
    }
  }
}

/// Divides by the sums, with `keepScale` above them, and stores the output by way of shared memory,
/// in rows, which all threads have read; and the logarithms of the sums.
template <AttentionShape shape, AttentionTile tile, typename T, int count>
__device__ __forceinline__ void storeOutput(const float (&accumulators)[count],
                                            OnlineSoftmax &softmax, float factor, float keepScale,
                                            T *output, float *logSums, const AttentionPlace &at,
                                            SharedAddress shared) {
  using P = AttentionConfig<shape, tile>;
  using Rows = typename P::ValueRows;
  const int lane = threadIdx.x % 32, ownRow = threadIdx.x / 32 * 16 + lane / 4;
  softmax.joinSums();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = at.firstRow + ownRow + half * 8;
    if (logSums != nullptr && lane % 4 == 0 && query <= at.lastRow)
      logSums[query * shape.rowLogSums] = softmax.logSum(half, factor);
  }
  const float scaling[2] = {softmax.scaling(0) * keepScale, softmax.scaling(1) * keepScale};
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
    constexpr bool hasPart = shape.isPacked || shape.queries % tile.queries != 0;
    if (hasPart && at.firstRow + row > at.lastRow) break;
    const SharedAddress from = shared + Rows::placeOf(row, column);
    T *to = output + (at.firstRow + row) * shape.rowOutput + column * chunk;
    if constexpr (shape.isOutputAligned) {
      unsigned words[4];
      loadShared(words, from);
      *reinterpret_cast<Packed<unsigned, 4> *>(to) = {words[0], words[1], words[2], words[3]};
    } else {
      for (int e = 0; e < chunk; ++e) to[e] = T{loadSharedElement(from + e * elementBytes)};
    }
  }
}

/// The whole kernel; launched with AttentionConfig::threads, ::sharedBytes and ::blocks.
template <typename T, AttentionShape shape, AttentionTile tile, typename PlacesOfHead,
          typename Score, typename ScoreWithoutMasks, typename Coverage, typename Partials,
          typename Dropout, typename Sequences, typename Order>
__device__ __forceinline__ void attention(
    const AttentionArgs<T, PlacesOfHead, Score, ScoreWithoutMasks, Coverage, Partials, Dropout,
                        Sequences, Order> &args) {
  static_assert(tile.packedHeads == 1 || __is_base_of(NoDropout, Dropout));
  using P = AttentionConfig<shape, tile>;
  constexpr float factor = (shape.scalesLast ? shape.scale : 1.0f) * 1.44269504f;
  constexpr bool seesAll = __is_base_of(FullCoverage, Coverage);
  const SharedAddress stages = dynamicShared() + (P::areQueriesInStages ? 0 : P::queryBytes),
                      queryTile = P::areQueriesInStages ? stages + (tile.stages - 1) * P::stageBytes
                                                        : dynamicShared();
  const BlockPlace own =
      args.order.template of<shape.heads / tile.packedHeads, P::queryTiles, tile.splits>(
          int(blockIdx.x));
  const int firstRow = own.tile * tile.queries, split = own.split,
            firstHead = own.group * tile.packedHeads, tokens = tokensOf<shape>(args, firstHead);
  const AttentionPlace at = placeOfBlock<shape, tile>(firstHead, firstRow, tokens);
  if (shape.isPacked && firstRow > at.lastRow) return;
  const HeadPlaces places = args.placesOfHead(at.firstHead);
  const int end = endOfKeys<shape, tile>(args, at, tokens);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warpRow = warp % P::rowWarps * 16, warpKey = warp / P::rowWarps * P::keysOfWarp;

  const auto coverageOf = [&](int keyTile) {
    return coverageOfTile<shape, tile>(args.coverage, at, keyTile);
  };
  SeenSteps<seesAll, P::keyTiles, tile.splits, tile.stages - 1, decltype(coverageOf)> seen(
      coverageOf, split);
  PagesOfRows<shape, tile.keys, P::HeadRows::chunks, P::threads> pagesOfKeys;
  PagesOfRows<shape, tile.keys, P::ValueRows::chunks, P::threads> pagesOfValues;
  constexpr bool arePaged = shape.pagePositions > 0,
                 sharePages = P::HeadRows::chunks == P::ValueRows::chunks;
  const auto findPages = [&](int keyTile) {
    if (!arePaged || keyTile >= P::keyTiles) return;
    pagesOfKeys.load(args.table + places.table, keyTile * tile.keys, shape.keys);
    if constexpr (!sharePages)
      pagesOfValues.load(args.table + places.table, keyTile * tile.keys, shape.keys);
  };
  const auto copy = [&](int keyTile, int stage) {
    if (keyTile < P::keyTiles) {
      const SharedAddress to = stages + stage * P::stageBytes;
      const int firstKey = keyTile * tile.keys;
      if constexpr (arePaged) {
        copyFromPages<shape, tile.keys, shape.headDim, P::threads, shape.rowK, shape.pageK>(
            to, args.k + places.k, pagesOfKeys, firstKey, end);
        const auto copyValues = [&](const auto &pages) {
          copyFromPages<shape, tile.keys, shape.valueDim, P::threads, shape.rowV, shape.pageV>(
              to + P::keyBytes, args.v + places.v, pages, firstKey, end);
        };
        if constexpr (sharePages) copyValues(pagesOfKeys);
        else copyValues(pagesOfValues);
      } else {
        copyPositions<tile.keys, shape.headDim, P::threads, shape.rowK>(to, args.k + places.k,
                                                                        firstKey, end);
        copyPositions<tile.keys, shape.valueDim, P::threads, shape.rowV>(
            to + P::keyBytes, args.v + places.v, firstKey, end);
      }
    }
    commitCopies();
  };

  copyQueries<shape, tile>(queryTile, args.q, args.placesOfHead, at);
#pragma unroll
  for (int stage = 0; stage < tile.stages - 1; ++stage) {
    findPages(seen.at(stage));
    copy(seen.at(stage), stage);
  }
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
  const int row = at.firstRow + warpRow + lane / 4, column = warpKey + lane % 4 * 2;
  int stage = 0;
#pragma unroll 1
  while (!seen.isDone()) {
    const int keyTile = seen.at(0);
    if constexpr (arePaged) {
      seen.advance();
      findPages(seen.last());
    }
    waitForCopies<tile.stages - 2>();
    // The tile has landed, and the one before it, or queries in its place, have been read by all.
    ptx::barrier();
    if constexpr (!arePaged) seen.advance();
    copy(seen.last(), stage == 0 ? tile.stages - 1 : stage - 1);
    const SharedAddress keys = stages + stage * P::stageBytes;
    stage = stage + 1 == tile.stages ? 0 : stage + 1;
    float scores[P::scores] = {};
    multiplyKeys<shape, T>(scores, loadQueries, keys, warpKey);
    constexpr bool hasPart = shape.keys % tile.keys != 0;
    const int firstColumn = keyTile * tile.keys + column;
    if ((hasPart && keyTile == P::keyTiles - 1) || coverageOf(keyTile) != TileCoverage::full)
      applyScoreOps<shape, tile, hasPart>(scores, args.score, at, row, firstColumn);
    else applyScoreOps<shape, tile, false>(scores, args.scoreWithoutMasks, at, row, firstColumn);
    float older[2];
    softmax.add(scores, factor, older);
#pragma unroll
    for (int o = 0; o < P::outputs; ++o) output[o] *= older[o / 2 % 2];
    dropExponentials(scores, args.dropout, at.firstHead, row, firstColumn);
    unsigned p[P::keysOfWarp / 16][4];
    packExponentials<T, P::scores>(p, scores);
    multiplyValues<shape, T>(output, p, keys + P::keyBytes, warpKey);
  }
  waitForCopies<0>();
  ptx::barrier();
  if constexpr (P::joins) {
    joinRows<shape, tile>(output, softmax, factor, args, at, split);
  } else {
    storeOutput<shape, tile>(output, softmax, factor, args.keepScale, args.output + places.output,
                             args.logSums == nullptr ? nullptr : args.logSums + places.logSums, at,
                             dynamicShared());
  }
}

}  // namespace weft::sm80
