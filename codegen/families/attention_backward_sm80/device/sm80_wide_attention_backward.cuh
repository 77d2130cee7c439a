// The backward pass of fused attention from sm_80 on (sm80_attention_backward.cuh) of wide heads:
// gradients of keys and of values do not fit the registers of a warp together, so that a block with
// keys sums one of both.
//
//    blocks with keys      of their gradient:   S^T = K Q^T    dP^T = V dO^T    dK += dS^T Q
//                          of their values':    S^T = K Q^T                     dV += P^T dO
//    blocks with queries   as they are there:   S = Q K^T      dP = dO V^T      dQ += dS K
//
// Eight products instead of seven; every sum is of one block here, too. Blocks with keys that have
// three products come first.
#pragma once

#include "weft/sm80_attention_backward.cuh"

namespace weft::sm80 {

/// The gradient of a tile of keys, or of their values: `block` is its number.
template <typename T, BackwardShape shape, BackwardTile tile, bool ofValues, typename Args>
__device__ __forceinline__ void wideBackwardOfKeys(const Args &args, int block) {
  using P = BackwardConfig<shape, tile>;
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
      copyPositions<tile.columns, shape.headDim, P::threads, shape.rowQ>(
          to, args.q + places.q, queryOf(step), shape.queries);
      copyPositions<tile.columns, shape.valueDim, P::threads, shape.rowDOutput>(
          to + outputBytes, args.dOutput + places.dOutput, queryOf(step), shape.queries);
      if (threadIdx.x < tile.columns) row = args.rowOf(headOf(step), queryOf(step) + threadIdx.x);
    }
    commitCopies();
  };
  const auto keepRow = [&](int step, int stage) {
    if (step < steps && threadIdx.x < tile.columns)
      storeScoreRow<P::rowWords>(stages + stage * P::stageBytes + rowBytes, threadIdx.x, row);
  };

  copyPositions<tile.rows, shape.headDim, P::threads, shape.rowK>(keys, args.k + own.k, firstKey,
                                                                  shape.keys);
  if constexpr (!ofValues)
    copyPositions<tile.rows, shape.valueDim, P::threads, shape.rowV>(values, args.v + own.v,
                                                                     firstKey, shape.keys);
#pragma unroll
  for (int stage = 0; stage < tile.stages - 1; ++stage) {
    copy(seen.at(stage), stage);
    keepRow(seen.at(stage), stage);
  }

  float sums[ofValues ? P::ofValue : P::ofHead] = {};
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
    multiplyRows<shape.headDim, T>(scores, keys, warpRow, queries);
    if constexpr (!ofValues) multiplyRows<shape.valueDim, T>(dKept, values, warpRow, outputs);
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
    unsigned left[P::scores / 8][4];
    if constexpr (ofValues) {
      packFragments<T, P::scores>(left, scores);
      multiplyColumns<shape.valueDim, T>(sums, left, outputs);
    } else {
      packFragments<T, P::scores>(left, dKept);
      multiplyColumns<shape.headDim, T>(sums, left, queries);
    }
    keepRow(seen.last(), filled);
    stage = stage + 1 == tile.stages ? 0 : stage + 1;
  }
  waitForCopies<0>();
  ptx::barrier();
  if constexpr (ofValues) keepRows<shape.valueDim, T>(sums, shape.scaleDV, values, warpRow);
  else keepRows<shape.headDim, T>(sums, shape.scaleDK, keys, warpRow);
  ptx::barrier();
  if constexpr (ofValues)
    storeRows<tile.rows, shape.valueDim, P::threads, shape.rowDV, shape.isDVAligned>(
        args.dV + own.dV, values, firstKey, shape.keys);
  else
    storeRows<tile.rows, shape.headDim, P::threads, shape.rowDK, shape.isDKAligned>(
        args.dK + own.dK, keys, firstKey, shape.keys);
}

/// The whole kernel; launched with BackwardConfig::threads, ::sharedBytes, and ::keyBlocks blocks
/// more than ::blocks.
template <typename T, BackwardShape shape, BackwardTile tile, typename... Functions>
__device__ __forceinline__ void wideAttentionBackward(const BackwardArgs<T, Functions...> &args) {
  constexpr int keyBlocks = BackwardConfig<shape, tile>::keyBlocks;
  storeMaskedScores<shape.heads, shape.queries, shape.keys, tile.rows, tile.columns, true,
                    BackwardConfig<shape, tile>::threads>(args.coverage, args.storeScores);
  const int block = int(blockIdx.x);
  if (block < keyBlocks) wideBackwardOfKeys<T, shape, tile, false>(args, block);
  else if (block < 2 * keyBlocks) wideBackwardOfKeys<T, shape, tile, true>(args, block - keyBlocks);
  else backwardOfQueries<T, shape, tile>(args, block - 2 * keyBlocks);
}

}  // namespace weft::sm80
