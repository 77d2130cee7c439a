// The backward pass of fused attention from sm_80 on of f32 that is read as tf32: the kernel of
// sm80_attention_backward.cuh with the products of sm80_tf32_attention_tiles.cuh. Which blocks own
// what, in which order they step and what they compute of a score is the same; gradients leave from
// registers.
#pragma once

#include "weft/sm80_attention_backward.cuh"
#include "weft/sm80_tf32_attention_tiles.cuh"

namespace weft::sm80 {

/// The shape as places in shared memory see it: columns of 16 bits.
__host__ __device__ constexpr BackwardShape asHalves(BackwardShape shape) {
  shape.headDim *= 2, shape.valueDim *= 2;
  return shape;
}

/// What follows from a backward pass and a tile; what is not named here is as BackwardConfig has
/// it.
template <BackwardShape shape, BackwardTile tile>
struct Tf32BackwardConfig : BackwardConfig<asHalves(shape), tile> {
  static constexpr int ofHead = shape.headDim / 2, ofValue = shape.valueDim / 2;
};

/// What loads eight columns of a warp's rows from `row` on, as a left operand.
template <int width>
__device__ __forceinline__ auto rowsOf(SharedAddress rows, int row) {
  return [=](unsigned(&words)[4], int block) {
    loadFloatRowBlock<width, true>(words, rows, row, block);
  };
}

/// Gradients of a tile of keys and values: `block` is its number.
template <BackwardShape shape, BackwardTile tile, typename Args>
__device__ __forceinline__ void tf32BackwardOfKeys(const Args &args, int block) {
  using P = Tf32BackwardConfig<shape, tile>;
  constexpr int queryTiles = (shape.queries + tile.columns - 1) / tile.columns,
                steps = shape.headsOfGroup * queryTiles;
  constexpr bool hasPart = shape.queries % tile.columns != 0;
  const SharedAddress keys = dynamicShared(), values = keys + tile.rows * P::headBytes,
                      stages = keys + P::ownBytes;
  constexpr int outputBytes = tile.columns * P::headBytes,
                rowBytes = outputBytes + tile.columns * P::valueBytes;
  const int firstKey = block % P::keyTiles * tile.rows,
            lastKey = smaller(firstKey + tile.rows, shape.keys) - 1,
            firstHead = block / P::keyTiles * shape.headsOfGroup;
  const BackwardPlaces own = args.placesOfHead(firstHead);
  const int lane = threadIdx.x % 32, warpRow = threadIdx.x / 32 * 16;

  const auto headOf = [&](int step) { return firstHead + step / queryTiles; };
  const auto queryOf = [&](int step) { return step % queryTiles * tile.columns; };
  const auto coverageOf = [&](int step) {
    const int query = queryOf(step);
    return args.coverage(headOf(step), query, smaller(query + tile.columns, shape.queries) - 1,
                         firstKey, lastKey);
  };
  SeenSteps<Args::seesAll, steps, 1, tile.stages - 1, decltype(coverageOf)> seen(coverageOf, 0);
  // What a thread knows of one row of the step that is copied; it is stored behind a product.
  ScoreRow<shape.rowFloats> row = {};
  const auto copy = [&](int step, int stage) {
    if (step < steps) {
      const SharedAddress to = stages + stage * P::stageBytes;
      const BackwardPlaces places = args.placesOfHead(headOf(step));
      copyFloatPositions<tile.columns, shape.headDim, P::threads, shape.rowQ>(
          to, args.q + places.q, queryOf(step), shape.queries);
      copyFloatPositions<tile.columns, shape.valueDim, P::threads, shape.rowDOutput>(
          to + outputBytes, args.dOutput + places.dOutput, queryOf(step), shape.queries);
      if (threadIdx.x < tile.columns) row = args.rowOf(headOf(step), queryOf(step) + threadIdx.x);
    }
    commitCopies();
  };
  const auto keepRow = [&](int step, int stage) {
    if (step < steps && threadIdx.x < tile.columns)
      storeScoreRow<P::rowWords>(stages + stage * P::stageBytes + rowBytes, threadIdx.x, row);
  };

  copyFloatPositions<tile.rows, shape.headDim, P::threads, shape.rowK>(keys, args.k + own.k,
                                                                       firstKey, shape.keys);
  copyFloatPositions<tile.rows, shape.valueDim, P::threads, shape.rowV>(values, args.v + own.v,
                                                                        firstKey, shape.keys);
#pragma unroll
  for (int stage = 0; stage < tile.stages - 1; ++stage) {
    copy(seen.at(stage), stage);
    keepRow(seen.at(stage), stage);
  }

  float dK[P::ofHead] = {}, dV[P::ofValue] = {};
  int stage = 0;
#pragma unroll 1
  while (!seen.isDone()) {
    const int step = seen.at(0);
    waitForCopies<tile.stages - 2>();
    // The step has landed, and the one before it has been read by all.
    ptx::barrier();
    const int filled = stage == 0 ? tile.stages - 1 : stage - 1;
    seen.advance();
    copy(seen.last(), filled);
    const SharedAddress queries = stages + stage * P::stageBytes, outputs = queries + outputBytes;
    float scores[P::scores] = {}, dKept[P::scores] = {};
    multiplyTf32Rows<shape.headDim>(scores, rowsOf<shape.headDim>(keys, warpRow), queries, 0);
    multiplyTf32Rows<shape.valueDim>(dKept, rowsOf<shape.valueDim>(values, warpRow), outputs, 0);
    const int head = headOf(step), firstQuery = queryOf(step), query = firstQuery + lane % 4 * 2,
              key = firstKey + warpRow + lane / 4;
    const bool isPart = hasPart && firstQuery + tile.columns > shape.queries;
    if (isPart || coverageOf(step) != TileCoverage::full) {
      applyToKeys<shape, tile, hasPart>(scores, dKept, args.gradients, args.dropoutTransposed,
                                        queries + rowBytes, head, query, key);
    } else {
      applyToKeys<shape, tile, false>(scores, dKept, args.gradientsWithoutMasks,
                                      args.dropoutTransposed, queries + rowBytes, head, query, key);
    }
    multiplyTf32Columns<shape.valueDim>(dV, scores, outputs, 0);
    multiplyTf32Columns<shape.headDim>(dK, dKept, queries, 0);
    keepRow(seen.last(), filled);
    stage = stage + 1 == tile.stages ? 0 : stage + 1;
  }
  waitForCopies<0>();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = firstKey + warpRow + lane / 4 + half * 8;
    if (key > lastKey) continue;
    storeTf32Row<shape.isDKAligned>(args.dK + own.dK + key * shape.rowDK, dK, half, shape.scaleDK);
    storeTf32Row<shape.isDVAligned>(args.dV + own.dV + key * shape.rowDV, dV, half, shape.scaleDV);
  }
}

/// Gradients of a tile of queries: `block` is its number.
template <BackwardShape shape, BackwardTile tile, typename Args>
__device__ __forceinline__ void tf32BackwardOfQueries(const Args &args, int block) {
  using P = Tf32BackwardConfig<shape, tile>;
  constexpr int steps = (shape.keys + tile.columns - 1) / tile.columns;
  constexpr bool hasPart = shape.keys % tile.columns != 0;
  const SharedAddress queries = dynamicShared(), outputs = queries + tile.rows * P::headBytes,
                      stages = queries + P::ownBytes;
  constexpr int valuePlace = tile.columns * P::headBytes;
  const int firstQuery = (P::queryTiles - 1 - block % P::queryTiles) * tile.rows,
            lastQuery = smaller(firstQuery + tile.rows, shape.queries) - 1,
            head = block / P::queryTiles;
  const BackwardPlaces places = args.placesOfHead(head);
  const int lane = threadIdx.x % 32, warpRow = threadIdx.x / 32 * 16,
            query = firstQuery + warpRow + lane / 4,
            end = endOfKeys<shape>(args, head, firstQuery, lastQuery);

  const auto coverageOf = [&](int step) {
    const int key = step * tile.columns;
    return args.coverage(head, firstQuery, lastQuery, key,
                         smaller(key + tile.columns, shape.keys) - 1);
  };
  SeenSteps<Args::seesAll, steps, 1, tile.stages - 1, decltype(coverageOf)> seen(coverageOf, 0);
  const auto copy = [&](int step, int stage) {
    if (step < steps) {
      const SharedAddress to = stages + stage * P::stageBytes;
      copyFloatPositions<tile.columns, shape.headDim, P::threads, shape.rowK>(
          to, args.k + places.k, step * tile.columns, end);
      copyFloatPositions<tile.columns, shape.valueDim, P::threads, shape.rowV>(
          to + valuePlace, args.v + places.v, step * tile.columns, shape.keys);
    }
    commitCopies();
  };

  copyFloatPositions<tile.rows, shape.headDim, P::threads, shape.rowQ>(queries, args.q + places.q,
                                                                       firstQuery, shape.queries);
  copyFloatPositions<tile.rows, shape.valueDim, P::threads, shape.rowDOutput>(
      outputs, args.dOutput + places.dOutput, firstQuery, shape.queries);
#pragma unroll
  for (int stage = 0; stage < tile.stages - 1; ++stage) copy(seen.at(stage), stage);
  const ScoreRow<shape.rowFloats> rows[2] = {args.rowOf(head, query), args.rowOf(head, query + 8)};

  float dQ[P::ofHead] = {};
  int stage = 0;
#pragma unroll 1
  while (!seen.isDone()) {
    const int step = seen.at(0);
    waitForCopies<tile.stages - 2>();
    ptx::barrier();
    seen.advance();
    copy(seen.last(), stage == 0 ? tile.stages - 1 : stage - 1);
    const SharedAddress keys = stages + stage * P::stageBytes;
    stage = stage + 1 == tile.stages ? 0 : stage + 1;
    float scores[P::scores] = {}, dKept[P::scores] = {};
    multiplyTf32Rows<shape.headDim>(scores, rowsOf<shape.headDim>(queries, warpRow), keys, 0);
    multiplyTf32Rows<shape.valueDim>(dKept, rowsOf<shape.valueDim>(outputs, warpRow),
                                     keys + valuePlace, 0);
    const int key = step * tile.columns + lane % 4 * 2;
    if ((hasPart && step == steps - 1) || coverageOf(step) != TileCoverage::full) {
      applyToQueries<shape, hasPart>(scores, dKept, args.gradients, args.dropout, rows, head, query,
                                     key);
    } else {
      applyToQueries<shape, false>(scores, dKept, args.gradientsWithoutMasks, args.dropout, rows,
                                   head, query, key);
    }
    multiplyTf32Columns<shape.headDim>(dQ, dKept, keys, 0);
  }
  waitForCopies<0>();
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (query + half * 8 <= lastQuery)
      storeTf32Row<shape.isDQAligned>(args.dQ + places.dQ + (query + half * 8) * shape.rowDQ, dQ,
                                      half, shape.scaleDQ);
}

/// The whole kernel; launched with Tf32BackwardConfig::threads, ::sharedBytes and ::blocks.
template <BackwardShape shape, BackwardTile tile, typename... Functions>
__device__ __forceinline__ void tf32AttentionBackward(
    const BackwardArgs<float, Functions...> &args) {
  constexpr int keyBlocks = Tf32BackwardConfig<shape, tile>::keyBlocks;
  if (blockIdx.x < keyBlocks) tf32BackwardOfKeys<shape, tile>(args, int(blockIdx.x));
  else tf32BackwardOfQueries<shape, tile>(args, int(blockIdx.x) - keyBlocks);
}

}  // namespace weft::sm80
