// The shape of the attention kernel from sm_80 on (sm80_attention.cuh): what an attention and a
// tile are, what follows from them, and where tiles of queries, keys and values lie in shared
// memory.
#pragma once

#include "weft/sm80_tiles.cuh"

namespace weft::sm80 {

/// Element strides from a position to the next; positions and elements of one head. The dot
/// product of a query and a key is multiplied by `scale`; if scalesLast only within the
/// exponential, behind the masks.
///
/// Keys and values may lie in pages (sm80_attention_pages.cuh), each of pagePositions positions;
/// then rowK and rowV are strides inside one, and pageK and pageV those from a page to the next.
struct AttentionShape {
  int heads, queries, keys, headDim, valueDim;
  Offset rowQ, rowK, rowV, rowOutput, rowLogSums;
  bool isOutputAligned;  // rows of the output start at multiples of 16 bytes
  float scale;
  bool scalesLast;
  int pagePositions = 0;  // 0: no pages
  int pages = 0;
  Offset pageK = 0, pageV = 0, strideOfEntry = 1;
  bool isPacked = false;  // rows are of packed tokens; `queries` and `keys` are bounds
  /// Keys and values behind the last key that a block sees are zeros, whatever memory has
  /// (seen_keys.cuh).
  bool zeroesUnseen = false;
};

/// queries: rows of a block, 16 a warp; keys: positions of a key tile; stages: key tiles, with
/// their values, in shared memory.
///
/// packedHeads: neighbouring heads that share keys and values and whose queries are rows of one
/// matrix, heads fastest; 1: rows are the queries of one head. masksDiffer: masks are not the same
/// for all of these heads. splits: blocks that share the key tiles of a tile of rows; block s takes
/// tiles s, s + splits, s + 2 splits, ..., so that each has its share of what masks leave.
struct AttentionTile {
  int queries, keys, stages;
  int packedHeads = 1;
  bool masksDiffer = false;
  int splits = 1;
};

/// The first elements of one head, of packed tokens those of its sequence, of pages those of page
/// 0; and the first entry of its sequence.
struct HeadPlaces {
  Offset q, k, v, output, logSums, table;
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
  /// Warps that share rows, each with its own keys of every tile: of few rows.
  static constexpr int keyWarps =
      tile.queries < 64 ? smaller(64 / tile.queries, tile.keys / 16) : 1;
  static constexpr int rowWarps = tile.queries / 16, warps = rowWarps * keyWarps,
                       threads = 32 * warps;
  static constexpr int rows = shape.queries * tile.packedHeads;
  static constexpr int queryTiles = (rows + tile.queries - 1) / tile.queries,
                       keyTiles = (shape.keys + tile.keys - 1) / tile.keys;
  static constexpr int rowTiles = shape.heads / tile.packedHeads * queryTiles,
                       blocks = rowTiles * tile.splits;
  /// Whether rows are brought together behind the loop (sm80_attention_join.cuh).
  static constexpr bool joins = keyWarps > 1 || tile.packedHeads > 1 || tile.splits > 1;
  using HeadRows = AttentionRows<shape.headDim>;
  using ValueRows = AttentionRows<shape.valueDim>;
  static constexpr int queryBytes = tile.queries * HeadRows::pitchBytes,
                       keyBytes = tile.keys * HeadRows::pitchBytes,
                       stageBytes = keyBytes + tile.keys * ValueRows::pitchBytes,
                       outputBytes = tile.queries * ValueRows::pitchBytes;
  /// Whether a warp keeps its queries in registers, not in shared memory alone.
  static constexpr bool keepsQueries = shape.headDim <= 128;
  /// Whether queries lie in the last stage until warps keep them.
  static constexpr bool areQueriesInStages = joins && keepsQueries && queryBytes <= stageBytes;
  static constexpr int stagesBytes =
      tile.stages * stageBytes + (areQueriesInStages ? 0 : queryBytes);
  /// Of a row that is joined: its output in fp32, then its maximum and sum. Eight rows of it lie in
  /// different banks.
  static constexpr int statsColumn = ValueRows::blocks * 16, joinPitch = statsColumn + 8,
                       joinBytes = keyWarps * tile.queries * joinPitch * 4;
  static constexpr int sharedBytes = larger(stagesBytes, joins ? joinBytes : outputBytes);
  static constexpr int keysOfWarp = tile.keys / keyWarps;
  /// Of a lane: eight of every 16 x 16 scores, or elements of the output, of its warp.
  static constexpr int scores = keysOfWarp / 2, outputs = ValueRows::blocks * 8;
  static_assert(tile.queries % 16 == 0 && keysOfWarp % 16 == 0 && tile.stages >= 2,
                "tiles of whole blocks, and a stage that is filled while one is read");
  static_assert(shape.headDim % 8 == 0 && shape.valueDim % 8 == 0, "rows of whole chunks");
  static_assert(shape.heads % tile.packedHeads == 0, "whole groups of heads");
};

/// The rows of a block: all inside the tensor.
struct AttentionPlace {
  int firstHead, firstRow, lastRow;
};
/// The head and the query of a row.
struct RowPlace {
  int head, query;
};
template <AttentionTile tile>
__device__ __forceinline__ RowPlace placeOfRow(const AttentionPlace &at, int row) {
  if constexpr (tile.packedHeads == 1) return {at.firstHead, row};
  else return {at.firstHead + row % tile.packedHeads, row / tile.packedHeads};
}

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

/// The same of the queries of a block, whose rows may be of several heads.
template <AttentionShape shape, AttentionTile tile, typename T, typename PlacesOfHead>
__device__ __forceinline__ void copyQueries(SharedAddress to, const T *q,
                                            const PlacesOfHead &placesOfHead,
                                            const AttentionPlace &at) {
  using P = AttentionConfig<shape, tile>;
  if constexpr (tile.packedHeads == 1) {
    copyPositions<tile.queries, shape.headDim, P::threads, shape.rowQ>(
        to, q + placesOfHead(at.firstHead).q, at.firstRow,
        shape.isPacked ? at.lastRow + 1 : shape.queries);
  } else {
    constexpr int chunks = P::HeadRows::chunks;
#pragma unroll 1
    for (int piece = threadIdx.x; piece < tile.queries * chunks; piece += P::threads) {
      const int row = piece / chunks, column = piece % chunks;
      const bool isInside = at.firstRow + row <= at.lastRow && column * chunk < shape.headDim;
      const RowPlace place = placeOfRow<tile>(at, isInside ? at.firstRow + row : at.firstRow);
      const T *from = q + placesOfHead(place.head).q + place.query * shape.rowQ;
      copyAsync(to + P::HeadRows::placeOf(row, column), isInside ? from + column * chunk : from,
                isInside ? 16 : 0);
    }
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
