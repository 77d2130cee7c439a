// The backward pass of fused attention from sm_80 on, in one launch: gradients of queries, keys and
// values, without scores in memory, without atomics or scratch. Scores and probabilities are
// computed again, from the logarithms of sums that the forward pass stored.
//
//    blocks with keys      own 16 keys and values a warp, step over queries of all heads that share
//                          them:  S^T = K Q^T    dP^T = V dO^T    (P, dS of every element)
//                                 dV += P^T dO   dK += dS^T Q
//    blocks with queries   own 16 queries a warp, step over keys:
//                                 S = Q K^T      dP = dO V^T      (dS of every element)
//                                 dQ += dS K
//
// Seven products instead of five: S and dP are computed by both kinds of blocks, so that every sum
// is of one block, in one order, with the same bits in every launch. P and dS stay in the registers
// of the warp: accumulators of one mma.sync lie as the left operand of the next. The tiles of a
// step are copied into a circular buffer of stages; steps that masks exclude are skipped, and masks
// are left out of those that they keep whole.
//
// Blocks with keys come first, and first keys before last ones: under a causal mask they take
// longest. Blocks with queries begin with the last ones.
#pragma once

#include "weft/seen_keys.cuh"
#include "weft/seen_steps.cuh"
#include "weft/sm80_attention_backward_tiles.cuh"
#include "weft/tile_coverage.cuh"

namespace weft::sm80 {

/// The arguments by name: tensors, the places of a head in them, and the functions of element-wise
/// ops (codegen/families/attention_backward/AttentionGradients.h).
template <typename T, typename PlacesOfHead, typename RowOf, typename Gradients,
          typename GradientsWithoutMasks, typename Coverage = FullCoverage,
          typename Dropout = NoDropout, typename DropoutTransposed = NoDropout,
          typename StoreScores = NoScoreStore>
struct BackwardArgs {
  static constexpr bool seesAll = __is_base_of(FullCoverage, Coverage);
  const T *q, *k, *v, *dOutput;
  T *dQ, *dK, *dV;
  PlacesOfHead placesOfHead;
  RowOf rowOf;
  Gradients gradients;
  GradientsWithoutMasks gradientsWithoutMasks;
  Coverage coverage = {};
  Dropout dropout = {};
  DropoutTransposed dropoutTransposed = {};
  StoreScores storeScores = {};  // of a query and two keys, by blocks with queries
};

/// Sums of products into gradients, where rows are keys and columns queries. `query`, `key`: of the
/// lane's first score; rows: of the step's queries in shared memory. isClipped: queries from the
/// tensor's end on give zeros.
template <BackwardShape shape, BackwardTile tile, bool isClipped, int count, typename Gradients,
          typename Dropout>
__device__ __forceinline__ void applyToKeys(float (&scores)[count], float (&dKept)[count],
                                            const Gradients &gradients, const Dropout &dropout,
                                            SharedAddress rows, int head, int query, int key) {
#pragma unroll
  for (int block = 0; block < count / 8; ++block) {
    const auto kept = dropout(head, query + block * 16, key);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ScoreRow<shape.rowFloats> pair[2];
      loadScoreRows<BackwardConfig<shape, tile>::rowWords>(
          pair, rows, block * 16 + half * 8 + threadIdx.x % 4 * 2);
#pragma unroll
      for (int e = half * 4; e < half * 4 + 4; ++e) {
        const int own = query + block * 16 + columnInFragment(e);
        float &score = scores[block * 8 + e], &gradient = dKept[block * 8 + e];
        const ScoreGradients result =
            gradients(score, gradient, pair[e % 2], head, own, key + rowInFragment(e), kept.at(e));
        const bool isInside = !isClipped || own < shape.queries;
        score = isInside ? result.kept : 0.0f;
        gradient = isInside ? result.dScore : 0.0f;
      }
    }
  }
}

/// The same where rows are queries and columns keys; `rows`: of the lane's two queries. The
/// probabilities are dropped. What is stored beside the gradients of dot products takes the place
/// of the scores.
template <BackwardShape shape, bool isClipped, int count, typename Gradients, typename Dropout>
__device__ __forceinline__ void applyToQueries(float (&scores)[count], float (&dKept)[count],
                                               const Gradients &gradients, const Dropout &dropout,
                                               const ScoreRow<shape.rowFloats> (&rows)[2], int head,
                                               int query, int key) {
#pragma unroll
  for (int block = 0; block < count / 8; ++block) {
    const auto kept = dropout(head, query, key + block * 16);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int own = key + block * 16 + columnInFragment(e);
      float &gradient = dKept[block * 8 + e];
      const auto result = gradients(scores[block * 8 + e], gradient, rows[e / 2 % 2], head,
                                    query + rowInFragment(e), own, kept.at(e));
      gradient = !isClipped || own < shape.keys ? result.dScore : 0.0f;
      if constexpr (storesBeside<decltype(gradients(0.0f, 0.0f, rows[0], 0, 0, 0, false))>)
        scores[block * 8 + e] = result.stored;
    }
  }
}

/// Gradients of a tile of keys and values: `block` is its number.
template <typename T, BackwardShape shape, BackwardTile tile, typename Args>
__device__ __forceinline__ void backwardOfKeys(const Args &args, int block) {
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
  copyPositions<tile.rows, shape.valueDim, P::threads, shape.rowV>(values, args.v + own.v, firstKey,
                                                                   shape.keys);
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
    multiplyRows<shape.headDim, T>(scores, keys, warpRow, queries);
    multiplyRows<shape.valueDim, T>(dKept, values, warpRow, outputs);
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
    unsigned p[P::scores / 8][4], dS[P::scores / 8][4];
    packFragments<T, P::scores>(p, scores);
    packFragments<T, P::scores>(dS, dKept);
    multiplyColumns<shape.valueDim, T>(dV, p, outputs);
    multiplyColumns<shape.headDim, T>(dK, dS, queries);
    keepRow(seen.last(), filled);
    stage = stage + 1 == tile.stages ? 0 : stage + 1;
  }
  waitForCopies<0>();
  ptx::barrier();
  keepRows<shape.headDim, T>(dK, shape.scaleDK, keys, warpRow);
  keepRows<shape.valueDim, T>(dV, shape.scaleDV, values, warpRow);
  ptx::barrier();
  storeRows<tile.rows, shape.headDim, P::threads, shape.rowDK, shape.isDKAligned>(
      args.dK + own.dK, keys, firstKey, shape.keys);
  storeRows<tile.rows, shape.valueDim, P::threads, shape.rowDV, shape.isDVAligned>(
      args.dV + own.dV, values, firstKey, shape.keys);
}

/// From which key on a tile of queries reads zeros.
template <BackwardShape shape, typename Args>
__device__ __forceinline__ int endOfKeys(const Args &args, int head, int firstQuery,
                                         int lastQuery) {
  if constexpr (!shape.zeroesUnseen) return shape.keys;
  else return seenKeys(args.coverage, head, firstQuery, lastQuery, shape.keys);
}

/// Gradients of a tile of queries: `block` is its number.
template <typename T, BackwardShape shape, BackwardTile tile, typename Args>
__device__ __forceinline__ void backwardOfQueries(const Args &args, int block) {
  using P = BackwardConfig<shape, tile>;
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
      copyPositions<tile.columns, shape.headDim, P::threads, shape.rowK>(to, args.k + places.k,
                                                                         step * tile.columns, end);
      copyPositions<tile.columns, shape.valueDim, P::threads, shape.rowV>(
          to + valuePlace, args.v + places.v, step * tile.columns, shape.keys);
    }
    commitCopies();
  };

  copyPositions<tile.rows, shape.headDim, P::threads, shape.rowQ>(queries, args.q + places.q,
                                                                  firstQuery, shape.queries);
  copyPositions<tile.rows, shape.valueDim, P::threads, shape.rowDOutput>(
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
    multiplyRows<shape.headDim, T>(scores, queries, warpRow, keys);
    multiplyRows<shape.valueDim, T>(dKept, outputs, warpRow, keys + valuePlace);
    const int key = step * tile.columns + lane % 4 * 2;
    if ((hasPart && step == steps - 1) || coverageOf(step) != TileCoverage::full) {
      applyToQueries<shape, hasPart>(scores, dKept, args.gradients, args.dropout, rows, head, query,
                                     key);
    } else {
      applyToQueries<shape, false>(scores, dKept, args.gradientsWithoutMasks, args.dropout, rows,
                                   head, query, key);
    }
    unsigned dS[P::scores / 8][4];
    packFragments<T, P::scores>(dS, dKept);
    const auto store = [&](const unsigned(&fragments)[P::scores / 8][4]) {
#pragma unroll
      for (int block = 0; block < P::scores / 8; ++block) {
#pragma unroll
        for (int w = 0; w < 4; ++w)
          args.storeScores(head, query + rowInFragment(2 * w),
                           key + block * 16 + columnInFragment(2 * w), fragments[block][w]);
      }
    };
    if constexpr (storesBeside<decltype(args.gradients(0.0f, 0.0f, rows[0], 0, 0, 0, false))>) {
      unsigned stored[P::scores / 8][4];
      packFragments<T, P::scores>(stored, scores);
      store(stored);
    } else {
      store(dS);
    }
    multiplyColumns<shape.headDim, T>(dQ, dS, keys);
  }
  waitForCopies<0>();
  ptx::barrier();
  keepRows<shape.headDim, T>(dQ, shape.scaleDQ, queries, warpRow);
  ptx::barrier();
  storeRows<tile.rows, shape.headDim, P::threads, shape.rowDQ, shape.isDQAligned>(
      args.dQ + places.dQ, queries, firstQuery, shape.queries);
}

/// The whole kernel; launched with BackwardConfig::threads, ::sharedBytes and ::blocks.
template <typename T, BackwardShape shape, BackwardTile tile, typename... Functions>
__device__ __forceinline__ void attentionBackward(const BackwardArgs<T, Functions...> &args) {
  constexpr int keyBlocks = BackwardConfig<shape, tile>::keyBlocks;
  storeMaskedScores<shape.heads, shape.queries, shape.keys, tile.rows, tile.columns, true,
                    BackwardConfig<shape, tile>::threads>(args.coverage, args.storeScores);
  if (blockIdx.x < keyBlocks) backwardOfKeys<T, shape, tile>(args, int(blockIdx.x));
  else backwardOfQueries<T, shape, tile>(args, int(blockIdx.x) - keyBlocks);
}

}  // namespace weft::sm80
