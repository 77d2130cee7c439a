// Fused attention from sm_80 on of f32 that is read as tf32: the kernel of sm80_attention.cuh with
// other products. What a block computes, its masks, packed heads, splits and pages are the same.
//
// Queries, keys and values lie in shared memory as they came, and are rounded to nearest on the way
// to registers. A float is copied as two elements of 16 bits: rows, chunks and their places are
// those of 16-bit rows of twice as many columns (asHalves). Four 8 x 8 blocks of these, as ldmatrix
// reads them, are then 16 rows of eight floats, as a product of 16 x 8 x 8 takes them.
//
// **P from accumulators.** Of a row of eight scores lane t of four has 2 t and 2 t + 1; of a left
// operand it has elements t and t + 4. A product may be summed in any order, so that element t of
// an operand is key 2 t and element t + 4 is key 2 t + 1, for P and for the rows of V alike:
//
//    accumulators  [s0 s1 | s2 s3 | s4 s5 | s6 s7]     lanes 0 .. 3 of a row
//    left operand  [s0 s2 s4 s6 | s1 s3 s5 s7]         the same registers, in another order
//
// No exponential crosses lanes. V is read by words, since ldmatrix transposes elements of 16 bits
// alone; the rows 2 t of four lanes lie in different banks, and so do rows 2 t + 1.
#pragma once

#include "weft/sm80_attention.cuh"
#include "weft/sm80_tf32_mma.cuh"

namespace weft::sm80 {

/// The shape as copies and places in shared memory see it: strides and columns of 16 bits.
__host__ __device__ constexpr AttentionShape asHalves(AttentionShape shape) {
  shape.headDim *= 2, shape.valueDim *= 2;
  shape.rowQ *= 2, shape.rowK *= 2, shape.rowV *= 2;
  shape.pageK *= 2, shape.pageV *= 2;
  return shape;
}
template <AttentionShape shape>
inline constexpr AttentionShape halvesOf = asHalves(shape);

/// What follows from an attention and a tile; what is not named here is as AttentionConfig has it.
template <AttentionShape shape, AttentionTile tile>
struct Tf32AttentionConfig : AttentionConfig<halvesOf<shape>, tile> {
  using Copied = AttentionConfig<halvesOf<shape>, tile>;
  using Joined = AttentionConfig<shape, tile>;
  static constexpr int sharedBytes =
      larger(Copied::ringBytes, Copied::joins ? Joined::joinBytes : 0);
  /// Products of a row: eight columns of queries and keys, or of values, each.
  static constexpr int headBlocks = shape.headDim / 8, valueBlocks = shape.valueDim / 8;
  static constexpr int outputs = valueBlocks * 4;
};

__device__ __forceinline__ void roundWords(unsigned (&words)[4]) {
#pragma unroll
  for (int w = 0; w < 4; ++w) words[w] = roundToTf32(words[w]);
}

/// S = Q K^T of a warp. `loadQueries`: eight columns of its queries, rounded; firstKey: its first
/// key in the tile.
template <AttentionShape shape, int count, typename LoadQueries>
__device__ __forceinline__ void multiplyTf32Keys(float (&scores)[count],
                                                 const LoadQueries &loadQueries, SharedAddress keys,
                                                 int firstKey) {
#pragma unroll
  for (int block = 0; block < shape.headDim / 8; ++block) {
    unsigned q[4];
    loadQueries(q, block);
#pragma unroll
    for (int s = 0; s < count; s += 8) {
      unsigned k[4];
      loadRowBlock<halvesOf<shape>.headDim, false>(k, keys, firstKey + s * 2, block);
      roundWords(k);
      multiplyTf32(scores[s], scores[s + 1], scores[s + 2], scores[s + 3], q, k[0], k[1]);
      multiplyTf32(scores[s + 4], scores[s + 5], scores[s + 6], scores[s + 7], q, k[2], k[3]);
    }
  }
}

/// O += P V. `exponentials` of 8 keys are four of a lane; firstKey: the first of them in the tile.
template <AttentionShape shape, int count, int scores>
__device__ __forceinline__ void multiplyTf32Values(float (&output)[count],
                                                   const float (&exponentials)[scores],
                                                   SharedAddress values, int firstKey) {
  using Rows = AttentionRows<halvesOf<shape>.valueDim>;
  const int lane = threadIdx.x % 32, column = lane / 4;
#pragma unroll
  for (int s = 0; s < scores; s += 4) {
    // Keys 2 t of both rows, then keys 2 t + 1.
    const unsigned p[4] = {
        roundToTf32(bitsOf(exponentials[s])), roundToTf32(bitsOf(exponentials[s + 2])),
        roundToTf32(bitsOf(exponentials[s + 1])), roundToTf32(bitsOf(exponentials[s + 3]))};
    const SharedAddress rows = values + (firstKey + s * 2) * Rows::pitchBytes;
#pragma unroll
    for (int o = 0; o < count; o += 4) {
      const int chunkOfRow = o / 2 + column / 4;  // a chunk: four floats
      unsigned v[2];
#pragma unroll
      for (int w = 0; w < 2; ++w)
        v[w] = roundToTf32(
            loadSharedWord(rows + Rows::placeOf(lane % 4 * 2 + w, chunkOfRow) + column % 4 * 4));
      multiplyTf32(output[o], output[o + 1], output[o + 2], output[o + 3], p, v[0], v[1]);
    }
  }
}

/// Divides by the sums and stores the output from registers, in pairs of a row, and the logarithms
/// of the sums.
template <AttentionShape shape, AttentionTile tile, int count>
__device__ __forceinline__ void storeTf32Output(const float (&accumulators)[count],
                                                OnlineSoftmax &softmax, float factor, float *output,
                                                float *logSums, const AttentionPlace &at,
                                                int warpRow) {
  const int lane = threadIdx.x % 32;
  softmax.joinSums();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = at.firstRow + warpRow + lane / 4 + half * 8;
    if (query > at.lastRow) continue;
    if (logSums != nullptr && lane % 4 == 0)
      logSums[query * shape.rowLogSums] = softmax.logSum(half, factor);
    const float scaling = softmax.scaling(half);
    float *row = output + query * shape.rowOutput + lane % 4 * 2;
#pragma unroll
    for (int o = half * 2; o < count; o += 4) {
      const Vec<float, 2> pair{{accumulators[o] * scaling, accumulators[o + 1] * scaling}};
      float *to = row + o / 4 * 8;
      if constexpr (shape.isOutputAligned) {
        storeVector<2>(to, pair);
      } else {
        storeOne(to, pair.at[0]);
        storeOne(to + 1, pair.at[1]);
      }
    }
  }
}

/// The whole kernel; launched with Tf32AttentionConfig::threads, ::sharedBytes and ::blocks.
template <AttentionShape shape, AttentionTile tile, typename PlacesOfHead, typename Score,
          typename ScoreWithoutMasks, typename Coverage, typename Partials>
__device__ __forceinline__ void tf32Attention(
    const AttentionArgs<float, PlacesOfHead, Score, ScoreWithoutMasks, Coverage, Partials> &args) {
  using P = Tf32AttentionConfig<shape, tile>;
  constexpr AttentionShape halves = halvesOf<shape>;
  constexpr float factor = (shape.scalesLast ? shape.scale : 1.0f) * 1.44269504f;
  constexpr int blocksOfGroup = P::queryTiles * tile.splits;
  constexpr bool seesAll = __is_base_of(FullCoverage, Coverage);
  const SharedAddress stages = dynamicShared() + (P::areQueriesInRing ? 0 : P::queryBytes),
                      queryTile = P::areQueriesInRing ? stages + (tile.stages - 1) * P::stageBytes
                                                      : dynamicShared();
  const int firstRow = (P::queryTiles - 1 - int(blockIdx.x) % P::queryTiles) * tile.queries;
  const int split = int(blockIdx.x) / P::queryTiles % tile.splits;
  const AttentionPlace at{int(blockIdx.x) / blocksOfGroup * tile.packedHeads, firstRow,
                          smaller(firstRow + tile.queries, P::rows) - 1};
  const HeadPlaces places = args.placesOfHead(at.firstHead);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warpRow = warp % P::rowWarps * 16, warpKey = warp / P::rowWarps * P::keysOfWarp;

  const auto coverageOf = [&](int keyTile) {
    return coverageOfTile<shape, tile>(args.coverage, at, keyTile);
  };
  SeenSteps<seesAll, P::keyTiles, tile.splits, tile.stages - 1, decltype(coverageOf)> seen(
      coverageOf, split);
  PagesOfRows<halves, tile.keys, P::HeadRows::chunks, P::threads> pagesOfKeys;
  PagesOfRows<halves, tile.keys, P::ValueRows::chunks, P::threads> pagesOfValues;
  constexpr bool arePaged = shape.pagePositions > 0,
                 sharePages = P::HeadRows::chunks == P::ValueRows::chunks;
  const auto findPages = [&](int keyTile) {
    if (!arePaged || keyTile >= P::keyTiles) return;
    pagesOfKeys.load(args.table + places.table, keyTile * tile.keys, shape.keys);
    if constexpr (!sharePages)
      pagesOfValues.load(args.table + places.table, keyTile * tile.keys, shape.keys);
  };
  const half *const k = reinterpret_cast<const half *>(args.k + places.k),
                    *const v = reinterpret_cast<const half *>(args.v + places.v);
  const auto copy = [&](int keyTile, int stage) {
    if (keyTile < P::keyTiles) {
      const SharedAddress to = stages + stage * P::stageBytes;
      const int firstKey = keyTile * tile.keys;
      if constexpr (arePaged) {
        copyFromPages<halves, tile.keys, halves.headDim, P::threads, halves.rowK, halves.pageK>(
            to, k, pagesOfKeys, firstKey);
        const auto copyValues = [&](const auto &pages) {
          copyFromPages<halves, tile.keys, halves.valueDim, P::threads, halves.rowV, halves.pageV>(
              to + P::keyBytes, v, pages, firstKey);
        };
        if constexpr (sharePages) copyValues(pagesOfKeys);
        else copyValues(pagesOfValues);
      } else {
        copyPositions<tile.keys, halves.headDim, P::threads, halves.rowK>(to, k, firstKey,
                                                                          shape.keys);
        copyPositions<tile.keys, halves.valueDim, P::threads, halves.rowV>(to + P::keyBytes, v,
                                                                           firstKey, shape.keys);
      }
    }
    commitCopies();
  };

  copyQueries<halves, tile>(
      queryTile, reinterpret_cast<const half *>(args.q),
      [&](int head) { return HeadPlaces{.q = args.placesOfHead(head).q * 2}; }, at);
#pragma unroll
  for (int stage = 0; stage < tile.stages - 1; ++stage) {
    findPages(seen.at(stage));
    copy(seen.at(stage), stage);
  }
  waitForCopies<tile.stages - 2>();
  ptx::barrier();
  unsigned kept[P::keepsQueries ? P::headBlocks : 1][4];
#pragma unroll
  for (int block = 0; block < (P::keepsQueries ? P::headBlocks : 0); ++block) {
    loadRowBlock<halves.headDim, true>(kept[block], queryTile, warpRow, block);
    roundWords(kept[block]);
  }
  const auto loadQueries = [&](unsigned(&words)[4], int block) {
    if constexpr (P::keepsQueries) {
#pragma unroll
      for (int word = 0; word < 4; ++word) words[word] = kept[block][word];
    } else {
      loadRowBlock<halves.headDim, true>(words, queryTile, warpRow, block);
      roundWords(words);
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
    multiplyTf32Keys<shape>(scores, loadQueries, keys, warpKey);
    constexpr bool hasPart = shape.keys % tile.keys != 0;
    const int firstColumn = keyTile * tile.keys + column;
    if ((hasPart && keyTile == P::keyTiles - 1) || coverageOf(keyTile) != TileCoverage::full)
      applyScoreOps<shape, tile, hasPart>(scores, args.score, at, row, firstColumn);
    else applyScoreOps<shape, tile, false>(scores, args.scoreWithoutMasks, at, row, firstColumn);
    float older[2];
    softmax.add(scores, factor, older);
#pragma unroll
    for (int o = 0; o < P::outputs; ++o) output[o] *= older[o / 2 % 2];
    multiplyTf32Values<shape>(output, scores, keys + P::keyBytes, warpKey);
  }
  waitForCopies<0>();
  ptx::barrier();
  if constexpr (P::joins) {
    joinRows<shape, tile>(output, softmax, factor, args, at, split);
  } else {
    storeTf32Output<shape, tile>(output, softmax, factor, args.output + places.output,
                                 args.logSums == nullptr ? nullptr : args.logSums + places.logSums,
                                 at, warpRow);
  }
}

}  // namespace weft::sm80
