// The shape of the kernel of backward attention from sm_80 on (sm80_attention_backward.cuh): what a
// backward pass and a tile are, what follows from them, and how tiles move between memory,
// shared memory and fragments.
#pragma once

#include "weft/fragment.cuh"
#include "weft/pack.cuh"
#include "weft/score_gradients.cuh"
#include "weft/sm80_attention_tiles.cuh"

namespace weft::sm80 {

/// heads: of queries; neighbouring headsOfGroup of them share keys and values. Element strides from
/// a position to the next. Gradients whose rows start at multiples of 16 bytes are aligned. Sums of
/// products are multiplied by scales before they are stored. rowFloats: of a ScoreRow.
struct BackwardShape {
  int heads, headsOfGroup, queries, keys, headDim, valueDim;
  Offset rowQ, rowK, rowV, rowDOutput, rowDQ, rowDK, rowDV;
  bool isDQAligned, isDKAligned, isDVAligned;
  float scaleDQ, scaleDK, scaleDV;
  int rowFloats;
  /// Blocks with queries read zeros in the place of keys behind the last one that they see
  /// (seen_keys.cuh).
  bool zeroesUnseen = false;
};

/// rows: of a block, keys or queries, 16 a warp; columns: queries or keys of a step; stages: steps
/// in shared memory.
struct BackwardTile {
  int rows, columns, stages;
};

/// The first elements of one head.
struct BackwardPlaces {
  Offset q, k, v, dOutput, dQ, dK, dV;
};

/// What follows from a backward pass and a tile.
template <BackwardShape shape, BackwardTile tile>
struct BackwardConfig {
  static constexpr int threads = 2 * tile.rows;
  static constexpr int keyTiles = (shape.keys + tile.rows - 1) / tile.rows,
                       queryTiles = (shape.queries + tile.rows - 1) / tile.rows;
  /// Blocks with keys come first, then those with queries.
  static constexpr int keyBlocks = shape.heads / shape.headsOfGroup * keyTiles,
                       blocks = keyBlocks + shape.heads * queryTiles;
  using HeadRows = AttentionRows<shape.headDim>;
  using ValueRows = AttentionRows<shape.valueDim>;
  static constexpr int headBytes = HeadRows::pitchBytes, valueBytes = ValueRows::pitchBytes,
                       ownBytes = tile.rows * (headBytes + valueBytes);
  /// Of a ScoreRow in shared memory: two neighbours are whole chunks.
  static constexpr int rowWords = (shape.rowFloats + 1) / 2 * 2;
  static constexpr int stageBytes = tile.columns * (headBytes + valueBytes + rowWords * 4),
                       sharedBytes = ownBytes + tile.stages * stageBytes;
  /// Of a lane: eight of every 16 x 16 scores, or elements of a gradient, of its warp.
  static constexpr int scores = tile.columns / 2, ofHead = HeadRows::blocks * 8,
                       ofValue = ValueRows::blocks * 8;
  static_assert(tile.rows % 16 == 0 && tile.columns % 16 == 0 && tile.stages >= 2,
                "tiles of whole blocks, and a stage that is filled while one is read");
  static_assert(shape.headDim % 8 == 0 && shape.valueDim % 8 == 0, "rows of whole chunks");
  static_assert(tile.columns <= threads, "a thread a row of scores");
};

/// sums += A B^T of a warp: A its 16 rows from `row` on, B the rows of a step; both of `width`
/// columns.
template <int width, typename T, int count>
__device__ __forceinline__ void multiplyRows(float (&sums)[count], SharedAddress a, int row,
                                             SharedAddress b) {
#pragma unroll
  for (int block = 0; block < AttentionRows<width>::blocks; ++block) {
    unsigned left[4];
    loadRowBlock<width, true>(left, a, row, block);
#pragma unroll
    for (int s = 0; s < count; s += 8) {
      unsigned right[4];
      loadRowBlock<width, false>(right, b, s * 2, block);
      multiply(static_cast<T *>(nullptr), sums[s], sums[s + 1], sums[s + 2], sums[s + 3], left,
               right[0], right[1]);
      multiply(static_cast<T *>(nullptr), sums[s + 4], sums[s + 5], sums[s + 6], sums[s + 7], left,
               right[2], right[3]);
    }
  }
}

/// sums += A B: A in registers, 16 columns a row of words, which are rows of B.
template <int width, typename T, int count, int steps>
__device__ __forceinline__ void multiplyColumns(float (&sums)[count], const unsigned (&a)[steps][4],
                                                SharedAddress b) {
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int s = 0; s < count; s += 8) {
      unsigned right[4];
      loadColumnBlock<width>(right, b, step * 16, s / 8);
      multiply(static_cast<T *>(nullptr), sums[s], sums[s + 1], sums[s + 2], sums[s + 3], a[step],
               right[0], right[1]);
      multiply(static_cast<T *>(nullptr), sums[s + 4], sums[s + 5], sums[s + 6], sums[s + 7],
               a[step], right[2], right[3]);
    }
  }
}

/// Elements of fragments as a left operand: words of pairs, four for each 16 columns.
template <typename T, int count>
__device__ __forceinline__ void packFragments(unsigned (&words)[count / 8][4],
                                              const float (&elements)[count]) {
#pragma unroll
  for (int step = 0; step < count / 8; ++step) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      words[step][w] = packPair(static_cast<T *>(nullptr), elements[8 * step + 2 * w],
                                elements[8 * step + 2 * w + 1]);
    }
  }
}

/// A row's numbers into shared memory, and those of two neighbouring rows from there; `row` is
/// even.
template <int words, int floats>
__device__ __forceinline__ void storeScoreRow(SharedAddress rows, int row,
                                              const ScoreRow<floats> &own) {
#pragma unroll
  for (int n = 0; n < floats; ++n) storeShared(rows + (row * words + n) * 4, bitsOf(own.at[n]));
}
template <int words, int floats>
__device__ __forceinline__ void loadScoreRows(ScoreRow<floats> (&pair)[2], SharedAddress rows,
                                              int row) {
  unsigned all[2 * words];
#pragma unroll
  for (int n = 0; n < 2 * words; n += 4) {
    unsigned four[4];
    loadShared(four, rows + (row * words + n) * 4);
#pragma unroll
    for (int w = 0; w < 4; ++w) all[n + w] = four[w];
  }
#pragma unroll
  for (int n = 0; n < 2 * floats; ++n)
    pair[n / floats].at[n % floats] =
        __builtin_bit_cast(float, all[n / floats * words + n % floats]);
}

/// A warp's rows of a gradient, from accumulators to shared memory.
template <int width, typename T, int count>
__device__ __forceinline__ void keepRows(const float (&sums)[count], float scale,
                                         SharedAddress rows, int row) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < count; s += 2) {
    const int e = s % 8, column = s / 8 * 2 + columnInFragment(e) / 8;
    storeShared(rows + AttentionRows<width>::placeOf(row + lane / 4 + rowInFragment(e), column) +
                    lane % 4 * 4,
                packPair(static_cast<T *>(nullptr), sums[s] * scale, sums[s + 1] * scale));
  }
}
/// A tile of rows from shared to global memory, those before `end`. `matrix`: of the head.
template <int rows, int width, int threads, Offset rowStride, bool isAligned, typename T>
__device__ __forceinline__ void storeRows(T *matrix, SharedAddress from, int first, int end) {
  constexpr int chunks = width / chunk;
  for (int piece = threadIdx.x; piece < rows * chunks; piece += threads) {
    const int row = piece / chunks, column = piece % chunks;
    if (first + row >= end) break;
    const SharedAddress place = from + AttentionRows<width>::placeOf(row, column);
    T *to = matrix + (first + row) * rowStride + column * chunk;
    if constexpr (isAligned) {
      unsigned words[4];
      loadShared(words, place);
      *reinterpret_cast<Packed<unsigned, 4> *>(to) = {words[0], words[1], words[2], words[3]};
    } else {
      for (int e = 0; e < chunk; ++e) to[e] = T{loadSharedElement(place + e * elementBytes)};
    }
  }
}

}  // namespace weft::sm80
