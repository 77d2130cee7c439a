// The backward pass of fused attention over packed tokens from sm_80 on: the kernels of
// sm80_attention_backward.cuh and sm80_tf32_attention_backward.cuh where the rows of a head are
// those of its sequence, which are known at run time alone (packed_sequences.cuh).
//
//    blocks        that own no token of the sequence end at once
//    steps         behind the last token of the sequence are empty
//    a step        that the last token lies in copies zeros behind it; scores of these rows, with
//                  which P and dS may be anything, give zeros
//
// Nothing behind a sequence's last token is read or written; rows of no sequence become zeros by
// what is called behind the kernel (zeroUnused). Who owns which rows, and the order of every sum,
// are the same as without packing.
#pragma once

#include "weft/packed_sequences.cuh"
#include "weft/sm80_attention_backward.cuh"
#include "weft/sm80_tf32_attention_backward.cuh"

namespace weft::sm80 {

/// Copies, products and stores of f16 and bf16. `rowStride`: of the tensor in memory.
template <typename T, BackwardShape shape, BackwardTile tile>
struct HalfBackward {
  using P = BackwardConfig<shape, tile>;

  template <int rows, int width, Offset rowStride>
  static __device__ __forceinline__ void copy(SharedAddress to, const T *matrix, int first,
                                              int end) {
    copyPositions<rows, width, P::threads, rowStride>(to, matrix, first, end);
  }
  /// sums += A B^T of a warp, with its rows of A from `row` on.
  template <int width, int count>
  static __device__ __forceinline__ void multiplyAcross(float (&sums)[count], SharedAddress a,
                                                        int row, SharedAddress b) {
    multiplyRows<width, T>(sums, a, row, b);
  }
  /// sums += A B with A from accumulators.
  template <int width, int count, int elements>
  static __device__ __forceinline__ void multiplyAlong(float (&sums)[count],
                                                       const float (&a)[elements],
                                                       SharedAddress b) {
    unsigned words[elements / 8][4];
    packFragments<T, elements>(words, a);
    multiplyColumns<width, T>(sums, words, b);
  }
  /// Brings a warp's rows of a gradient to where all threads store them from.
  template <int width, int count>
  static __device__ __forceinline__ void keep(const float (&sums)[count], float scale,
                                              SharedAddress rows, int row) {
    keepRows<width, T>(sums, scale, rows, row);
  }
  static __device__ __forceinline__ void finishKeeping() { ptx::barrier(); }
  template <int width, Offset rowStride, bool isAligned, int count>
  static __device__ __forceinline__ void store(T *matrix, const float (&)[count], float,
                                               SharedAddress rows, int, int first, int end) {
    storeRows<tile.rows, width, P::threads, rowStride, isAligned>(matrix, rows, first, end);
  }
};

/// The same of f32 that is read as tf32; gradients leave from registers.
template <BackwardShape shape, BackwardTile tile>
struct Tf32Backward {
  using P = Tf32BackwardConfig<shape, tile>;

  template <int rows, int width, Offset rowStride>
  static __device__ __forceinline__ void copy(SharedAddress to, const float *matrix, int first,
                                              int end) {
    copyFloatPositions<rows, width, P::threads, rowStride>(to, matrix, first, end);
  }
  template <int width, int count>
  static __device__ __forceinline__ void multiplyAcross(float (&sums)[count], SharedAddress a,
                                                        int row, SharedAddress b) {
    multiplyTf32Rows<width>(sums, rowsOf<width>(a, row), b, 0);
  }
  template <int width, int count, int elements>
  static __device__ __forceinline__ void multiplyAlong(float (&sums)[count],
                                                       const float (&a)[elements],
                                                       SharedAddress b) {
    multiplyTf32Columns<width>(sums, a, b, 0);
  }
  template <int width, int count>
  static __device__ __forceinline__ void keep(const float (&)[count], float, SharedAddress, int) {}
  static __device__ __forceinline__ void finishKeeping() {}
  template <int width, Offset rowStride, bool isAligned, int count>
  static __device__ __forceinline__ void store(float *matrix, const float (&sums)[count],
                                               float scale, SharedAddress, int row, int first,
                                               int end) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (const int own = first + row + int(threadIdx.x) % 32 / 4 + half * 8; own < end)
        storeTf32Row<isAligned>(matrix + own * rowStride, sums, half, scale);
  }
};

/// The tokens of a head's sequence, those that the tensors have room for.
template <typename Sequences>
__device__ __forceinline__ Sequence tokensOfHead(const Sequences &sequences, int head) {
  const Sequence own = sequences.of(head);
  return {own.first, smaller(own.count, Sequences::rows - own.first)};
}

/// Zeroes elements of columns from `end` on; `column`: of the lane's first one.
template <int count>
__device__ __forceinline__ void clipColumns(float (&elements)[count], int column, int end) {
#pragma unroll
  for (int e = 0; e < count; ++e)
    if (column + e / 8 * 16 + columnInFragment(e % 8) >= end) elements[e] = 0.0f;
}

/// Gradients of a tile of keys and values: `block` is its number. The arguments' places are those
/// of the first token of all, and `rowOf` takes a token in the place of a query.
template <typename Kind, BackwardShape shape, BackwardTile tile, typename Sequences, typename Args>
__device__ __forceinline__ void packedBackwardOfKeys(const Sequences &sequences, const Args &args,
                                                     int block) {
  using P = typename Kind::P;
  constexpr int queryTiles = (shape.queries + tile.columns - 1) / tile.columns,
                steps = shape.headsOfGroup * queryTiles;
  const SharedAddress keys = dynamicShared(), values = keys + tile.rows * P::headBytes,
                      stages = keys + P::ownBytes;
  constexpr int outputBytes = tile.columns * P::headBytes,
                rowBytes = outputBytes + tile.columns * P::valueBytes;
  const int firstKey = block % P::keyTiles * tile.rows,
            firstHead = block / P::keyTiles * shape.headsOfGroup;
  const Sequence tokens = tokensOfHead(sequences, firstHead);
  if (firstKey >= tokens.count) return;
  const int lastKey = smaller(firstKey + tile.rows, tokens.count) - 1;
  const BackwardPlaces own = args.placesOfHead(firstHead);
  const int lane = threadIdx.x % 32, warpRow = threadIdx.x / 32 * 16;

  const auto headOf = [&](int step) { return firstHead + step / queryTiles; };
  const auto queryOf = [&](int step) { return step % queryTiles * tile.columns; };
  const auto coverageOf = [&](int step) {
    const int query = queryOf(step);
    if (query >= tokens.count) return TileCoverage::empty;
    return args.coverage(headOf(step), query, smaller(query + tile.columns, tokens.count) - 1,
                         firstKey, lastKey);
  };
  SeenSteps<false, steps, 1, tile.stages - 1, decltype(coverageOf)> seen(coverageOf, 0);
  // What a thread knows of one row of the step that is copied; it is stored behind a product.
  ScoreRow<shape.rowFloats> row = {};
  const auto copy = [&](int step, int stage) {
    if (step < steps) {
      const SharedAddress to = stages + stage * P::stageBytes;
      const BackwardPlaces places = args.placesOfHead(headOf(step));
      Kind::template copy<tile.columns, shape.headDim, shape.rowQ>(
          to, args.q + places.q + tokens.first * shape.rowQ, queryOf(step), tokens.count);
      Kind::template copy<tile.columns, shape.valueDim, shape.rowDOutput>(
          to + outputBytes, args.dOutput + places.dOutput + tokens.first * shape.rowDOutput,
          queryOf(step), tokens.count);
      if (threadIdx.x < tile.columns) {
        const int query = queryOf(step) + int(threadIdx.x);
        row = query < tokens.count ? args.rowOf(headOf(step), tokens.first + query)
                                   : ScoreRow<shape.rowFloats>{};
      }
    }
    commitCopies();
  };
  const auto keepRow = [&](int step, int stage) {
    if (step < steps && threadIdx.x < tile.columns)
      storeScoreRow<P::rowWords>(stages + stage * P::stageBytes + rowBytes, threadIdx.x, row);
  };

  Kind::template copy<tile.rows, shape.headDim, shape.rowK>(
      keys, args.k + own.k + tokens.first * shape.rowK, firstKey, tokens.count);
  Kind::template copy<tile.rows, shape.valueDim, shape.rowV>(
      values, args.v + own.v + tokens.first * shape.rowV, firstKey, tokens.count);
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
    Kind::template multiplyAcross<shape.headDim>(scores, keys, warpRow, queries);
    Kind::template multiplyAcross<shape.valueDim>(dKept, values, warpRow, outputs);
    const int head = headOf(step), firstQuery = queryOf(step), query = firstQuery + lane % 4 * 2,
              key = firstKey + warpRow + lane / 4;
    const bool isPart = firstQuery + tile.columns > tokens.count;
    if (isPart || coverageOf(step) != TileCoverage::full) {
      applyToKeys<shape, tile, false>(scores, dKept, args.gradients, args.dropoutTransposed,
                                      queries + rowBytes, head, query, key);
      clipColumns(scores, query, tokens.count);
      clipColumns(dKept, query, tokens.count);
    } else {
      applyToKeys<shape, tile, false>(scores, dKept, args.gradientsWithoutMasks,
                                      args.dropoutTransposed, queries + rowBytes, head, query, key);
    }
    Kind::template multiplyAlong<shape.valueDim>(dV, scores, outputs);
    Kind::template multiplyAlong<shape.headDim>(dK, dKept, queries);
    keepRow(seen.last(), filled);
    stage = stage + 1 == tile.stages ? 0 : stage + 1;
  }
  waitForCopies<0>();
  Kind::finishKeeping();
  Kind::template keep<shape.headDim>(dK, shape.scaleDK, keys, warpRow);
  Kind::template keep<shape.valueDim>(dV, shape.scaleDV, values, warpRow);
  Kind::finishKeeping();
  Kind::template store<shape.headDim, shape.rowDK, shape.isDKAligned>(
      args.dK + own.dK + tokens.first * shape.rowDK, dK, shape.scaleDK, keys, warpRow, firstKey,
      tokens.count);
  Kind::template store<shape.valueDim, shape.rowDV, shape.isDVAligned>(
      args.dV + own.dV + tokens.first * shape.rowDV, dV, shape.scaleDV, values, warpRow, firstKey,
      tokens.count);
}

/// Gradients of a tile of queries: `block` is its number.
template <typename Kind, BackwardShape shape, BackwardTile tile, typename Sequences, typename Args>
__device__ __forceinline__ void packedBackwardOfQueries(const Sequences &sequences,
                                                        const Args &args, int block) {
  using P = typename Kind::P;
  constexpr int steps = (shape.keys + tile.columns - 1) / tile.columns;
  const SharedAddress queries = dynamicShared(), outputs = queries + tile.rows * P::headBytes,
                      stages = queries + P::ownBytes;
  constexpr int valuePlace = tile.columns * P::headBytes;
  const int firstQuery = (P::queryTiles - 1 - block % P::queryTiles) * tile.rows,
            head = block / P::queryTiles;
  const Sequence tokens = tokensOfHead(sequences, head);
  if (firstQuery >= tokens.count) return;
  const int lastQuery = smaller(firstQuery + tile.rows, tokens.count) - 1;
  const BackwardPlaces places = args.placesOfHead(head);
  const int lane = threadIdx.x % 32, warpRow = threadIdx.x / 32 * 16,
            query = firstQuery + warpRow + lane / 4;

  const auto coverageOf = [&](int step) {
    const int key = step * tile.columns;
    if (key >= tokens.count) return TileCoverage::empty;
    return args.coverage(head, firstQuery, lastQuery, key,
                         smaller(key + tile.columns, tokens.count) - 1);
  };
  SeenSteps<false, steps, 1, tile.stages - 1, decltype(coverageOf)> seen(coverageOf, 0);
  const auto copy = [&](int step, int stage) {
    if (step < steps) {
      const SharedAddress to = stages + stage * P::stageBytes;
      Kind::template copy<tile.columns, shape.headDim, shape.rowK>(
          to, args.k + places.k + tokens.first * shape.rowK, step * tile.columns, tokens.count);
      Kind::template copy<tile.columns, shape.valueDim, shape.rowV>(
          to + valuePlace, args.v + places.v + tokens.first * shape.rowV, step * tile.columns,
          tokens.count);
    }
    commitCopies();
  };

  Kind::template copy<tile.rows, shape.headDim, shape.rowQ>(
      queries, args.q + places.q + tokens.first * shape.rowQ, firstQuery, tokens.count);
  Kind::template copy<tile.rows, shape.valueDim, shape.rowDOutput>(
      outputs, args.dOutput + places.dOutput + tokens.first * shape.rowDOutput, firstQuery,
      tokens.count);
#pragma unroll
  for (int stage = 0; stage < tile.stages - 1; ++stage) copy(seen.at(stage), stage);
  ScoreRow<shape.rowFloats> rows[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (query + half * 8 < tokens.count)
      rows[half] = args.rowOf(head, tokens.first + query + half * 8);

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
    Kind::template multiplyAcross<shape.headDim>(scores, queries, warpRow, keys);
    Kind::template multiplyAcross<shape.valueDim>(dKept, outputs, warpRow, keys + valuePlace);
    const int firstKey = step * tile.columns, key = firstKey + lane % 4 * 2;
    if (firstKey + tile.columns > tokens.count || coverageOf(step) != TileCoverage::full) {
      applyToQueries<shape, false>(scores, dKept, args.gradients, args.dropout, rows, head, query,
                                   key);
      clipColumns(dKept, key, tokens.count);
    } else {
      applyToQueries<shape, false>(scores, dKept, args.gradientsWithoutMasks, args.dropout, rows,
                                   head, query, key);
    }
    Kind::template multiplyAlong<shape.headDim>(dQ, dKept, keys);
  }
  waitForCopies<0>();
  Kind::finishKeeping();
  Kind::template keep<shape.headDim>(dQ, shape.scaleDQ, queries, warpRow);
  Kind::finishKeeping();
  Kind::template store<shape.headDim, shape.rowDQ, shape.isDQAligned>(
      args.dQ + places.dQ + tokens.first * shape.rowDQ, dQ, shape.scaleDQ, queries, warpRow,
      firstQuery, tokens.count);
}

template <typename Kind, BackwardShape shape, BackwardTile tile, typename Sequences, typename Args>
__device__ __forceinline__ void packedBackward(const Sequences &sequences, const Args &args) {
  constexpr int keyBlocks = Kind::P::keyBlocks;
  if (blockIdx.x < keyBlocks)
    packedBackwardOfKeys<Kind, shape, tile>(sequences, args, int(blockIdx.x));
  else packedBackwardOfQueries<Kind, shape, tile>(sequences, args, int(blockIdx.x) - keyBlocks);
}

/// The whole kernel; launched as attentionBackward().
template <typename T, BackwardShape shape, BackwardTile tile, typename Sequences,
          typename... Functions>
__device__ __forceinline__ void packedAttentionBackward(const Sequences &sequences,
                                                        const BackwardArgs<T, Functions...> &args) {
  packedBackward<HalfBackward<T, shape, tile>, shape, tile>(sequences, args);
}
/// The same of tf32; launched as tf32AttentionBackward().
template <BackwardShape shape, BackwardTile tile, typename Sequences, typename... Functions>
__device__ __forceinline__ void packedTf32AttentionBackward(
    const Sequences &sequences, const BackwardArgs<float, Functions...> &args) {
  packedBackward<Tf32Backward<shape, tile>, shape, tile>(sequences, args);
}

}  // namespace weft::sm80
