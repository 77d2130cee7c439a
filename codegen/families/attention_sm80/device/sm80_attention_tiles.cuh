// The shape of the attention kernel from sm_80 on (sm80_attention.cuh): what an attention and a
// tile are, what follows from them, and where tiles of queries, keys and values lie in shared
// memory.
#pragma once

#include "weft/sm80_tiles.cuh"

namespace weft::sm80 {

/// Element strides from a position to the next; positions and elements of one head. The dot
/// product of a query and a key is multiplied by `scale`; if scalesLast only within the
/// exponential, behind the masks.
struct AttentionShape {
  int heads, queries, keys, headDim, valueDim;
  Offset rowQ, rowK, rowV, rowOutput, rowLogSums;
  bool isOutputAligned;  // rows of the output start at multiples of 16 bytes
  float scale;
  bool scalesLast;
};

/// queries: positions of a block, 16 a warp; keys: positions of a key tile; stages: key tiles, with
/// their values, in shared memory.
struct AttentionTile {
  int queries, keys, stages;
};

/// The first elements of one head.
struct HeadPlaces {
  Offset q, k, v, output, logSums;
};

/// Positions of `columns` elements in shared memory, padded to blocks of 16: chunks of 16 bytes,
/// such that eight neighbouring rows of one chunk lie in different banks. Where the row does not
/// fill these, it is an odd number of chunks long.
template <int columns>
struct AttentionRows {
  static constexpr int blocks = (columns + 15) / 16, chunks = 2 * blocks;
  static constexpr bool isPermuted = chunks % 8 == 0 || chunks == 2 || chunks == 4;
  static constexpr int pitchBytes = (isPermuted ? chunks : chunks + 1) * 16;
  static __device__ __forceinline__ int placeOf(int row, int column) {
    if constexpr (isPermuted) return sm80::placeOf<chunks>(row, column);
    else return row * pitchBytes + column * 16;
  }
};

/// What follows from an attention and a tile.
template <AttentionShape shape, AttentionTile tile>
struct AttentionConfig {
  static constexpr int warps = tile.queries / 16, threads = 32 * warps;
  static constexpr int queryTiles = (shape.queries + tile.queries - 1) / tile.queries,
                       keyTiles = (shape.keys + tile.keys - 1) / tile.keys;
  using HeadRows = AttentionRows<shape.headDim>;
  using ValueRows = AttentionRows<shape.valueDim>;
  static constexpr int queryBytes = tile.queries * HeadRows::pitchBytes,
                       keyBytes = tile.keys * HeadRows::pitchBytes,
                       stageBytes = keyBytes + tile.keys * ValueRows::pitchBytes,
                       outputBytes = tile.queries * ValueRows::pitchBytes;
  static constexpr int sharedBytes = larger(queryBytes + tile.stages * stageBytes, outputBytes);
  /// Of a lane: eight of every 16 x 16 scores, or elements of the output, of its warp.
  static constexpr int scores = tile.keys / 2, outputs = ValueRows::blocks * 8;
  /// Whether a warp keeps its queries in registers, not in shared memory alone.
  static constexpr bool keepsQueries = shape.headDim <= 128;
  static_assert(tile.queries % 16 == 0 && tile.keys % 16 == 0 && tile.stages >= 2,
                "tiles of whole blocks, and a stage that is filled while one is read");
  static_assert(shape.headDim % 8 == 0 && shape.valueDim % 8 == 0, "rows of whole chunks");
};

/// Starts to copy `rows` positions from `first` on into shared memory, zeros from `end` on and in
/// the padding of a row. `matrix`: of the head.
template <int rows, int columns, int threads, Offset rowStride, typename T>
__device__ __forceinline__ void copyPositions(SharedAddress to, const T *matrix, int first,
                                              int end) {
  using Rows = AttentionRows<columns>;
  constexpr int rowsAPass = threads / Rows::chunks, passes = (rows + rowsAPass - 1) / rowsAPass;
  const int ownRow = threadIdx.x / Rows::chunks, column = threadIdx.x % Rows::chunks;
  if (threads % Rows::chunks != 0 && ownRow >= rowsAPass) return;
  const T *from = matrix + (first + ownRow) * rowStride + column * chunk;
  const bool isPadding = columns % 16 != 0 && column * chunk >= columns;
#pragma unroll
  for (int pass = 0; pass < passes; ++pass) {
    const int row = ownRow + pass * rowsAPass;
    if (rows % rowsAPass != 0 && row >= rows) break;
    const bool isInside = first + row < end && !isPadding;
    copyAsync(to + Rows::placeOf(row, column),
              isInside ? from + pass * rowsAPass * rowStride : matrix, isInside ? 16 : 0);
  }
}

/// The 16 x 16 elements of shared rows from (row, 16 block) on, as the left operand of a
/// multiplication has them (`isLeft`), or as the right one that is summed over along rows.
template <int columns, bool isLeft>
__device__ __forceinline__ void loadRowBlock(unsigned (&words)[4], SharedAddress rows, int row,
                                             int block) {
  const int lane = threadIdx.x % 32, quarter = lane / 8;
  const int rowHalf = isLeft ? quarter % 2 : quarter / 2, half = isLeft ? quarter / 2 : quarter % 2;
  loadMatrices(words, rows + AttentionRows<columns>::placeOf(row + rowHalf * 8 + lane % 8,
                                                             block * 2 + half));
}
/// The same as the right operand that is summed over from row to row.
template <int columns>
__device__ __forceinline__ void loadColumnBlock(unsigned (&words)[4], SharedAddress rows, int row,
                                                int block) {
  const int lane = threadIdx.x % 32, quarter = lane / 8;
  loadTransposed(words, rows + AttentionRows<columns>::placeOf(row + quarter % 2 * 8 + lane % 8,
                                                               block * 2 + quarter / 2));
}

}  // namespace weft::sm80
