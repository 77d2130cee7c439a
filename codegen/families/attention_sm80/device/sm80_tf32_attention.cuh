// Fused attention from sm_80 on of f32 that is read as tf32: the kernel of sm80_attention.cuh with
// the products of sm80_tf32_attention_tiles.cuh. What a block computes, its masks, packed heads,
// splits and pages are the same; the output leaves from registers.
#pragma once

#include "weft/sm80_attention.cuh"
#include "weft/sm80_tf32_attention_tiles.cuh"

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
      larger(Copied::stagesBytes, Copied::joins ? Joined::joinBytes : 0);
  static constexpr int headBlocks = shape.headDim / 8, outputs = shape.valueDim / 2;
};

/// Divides by the sums and stores the output from registers, in pairs of a row, and the logarithms
/// of the sums.
template <AttentionShape shape, AttentionTile tile, int count>
__device__ __forceinline__ void storeTf32Output(const float (&accumulators)[count],
                                                OnlineSoftmax &softmax, float factor,
                                                float keepScale, float *output, float *logSums,
                                                const AttentionPlace &at, int warpRow) {
  const int lane = threadIdx.x % 32;
  softmax.joinSums();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = at.firstRow + warpRow + lane / 4 + half * 8;
    if (query > at.lastRow) continue;
    if (logSums != nullptr && lane % 4 == 0)
      logSums[query * shape.rowLogSums] = softmax.logSum(half, factor);
    storeTf32Row<shape.isOutputAligned>(output + query * shape.rowOutput, accumulators, half,
                                        softmax.scaling(half) * keepScale);
  }
}

/// The whole kernel; launched with Tf32AttentionConfig::threads, ::sharedBytes and ::blocks.
template <AttentionShape shape, AttentionTile tile, typename PlacesOfHead, typename Score,
          typename ScoreWithoutMasks, typename Coverage, typename Partials, typename Dropout,
          typename Sequences, typename Order>
__device__ __forceinline__ void tf32Attention(
    const AttentionArgs<float, PlacesOfHead, Score, ScoreWithoutMasks, Coverage, Partials, Dropout,
                        Sequences, Order> &args) {
  static_assert(tile.packedHeads == 1 || __is_base_of(NoDropout, Dropout));
  using P = Tf32AttentionConfig<shape, tile>;
  constexpr AttentionShape halves = halvesOf<shape>;
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
  const auto copy = [&](int keyTile, int stage) {
    if (keyTile < P::keyTiles) {
      const SharedAddress to = stages + stage * P::stageBytes;
      const int firstKey = keyTile * tile.keys;
      if constexpr (arePaged) {
        copyFromPages<halves, tile.keys, halves.headDim, P::threads, halves.rowK, halves.pageK>(
            to, reinterpret_cast<const half *>(args.k + places.k), pagesOfKeys, firstKey, end);
        const auto copyValues = [&](const auto &pages) {
          copyFromPages<halves, tile.keys, halves.valueDim, P::threads, halves.rowV, halves.pageV>(
              to + P::keyBytes, reinterpret_cast<const half *>(args.v + places.v), pages, firstKey,
              end);
        };
        if constexpr (sharePages) copyValues(pagesOfKeys);
        else copyValues(pagesOfValues);
      } else {
        copyFloatPositions<tile.keys, shape.headDim, P::threads, shape.rowK>(to, args.k + places.k,
                                                                             firstKey, end);
        copyFloatPositions<tile.keys, shape.valueDim, P::threads, shape.rowV>(
            to + P::keyBytes, args.v + places.v, firstKey, end);
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
  for (int block = 0; block < (P::keepsQueries ? P::headBlocks : 0); ++block)
    loadFloatRowBlock<shape.headDim, true>(kept[block], queryTile, warpRow, block);
  const auto loadQueries = [&](unsigned(&words)[4], int block) {
    if constexpr (P::keepsQueries) {
#pragma unroll
      for (int word = 0; word < 4; ++word) words[word] = kept[block][word];
    } else {
      loadFloatRowBlock<shape.headDim, true>(words, queryTile, warpRow, block);
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
    multiplyTf32Rows<shape.headDim>(scores, loadQueries, keys, warpKey);
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
    multiplyTf32Columns<shape.valueDim>(output, scores, keys + P::keyBytes, warpKey);
  }
  waitForCopies<0>();
  ptx::barrier();
  if constexpr (P::joins) {
    joinRows<shape, tile>(output, softmax, factor, args, at, split);
  } else {
    storeTf32Output<shape, tile>(
        output, softmax, factor, args.keepScale, args.output + places.output,
        args.logSums == nullptr ? nullptr : args.logSums + places.logSums, at, warpRow);
  }
}

}  // namespace weft::sm80
