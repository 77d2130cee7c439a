// Block masks: the table of a mask's tiles as emitted kernels hold it, and what score ops and
// coverage ask of it (kernel/BlockMask.h).
//
// A table is a constant in device memory, [heads][rows of tiles][words], a bit a tile, the first
// column in the lowest one. Coverage of a tile of scores reads one word, or two, a row of tiles.
#pragma once

#include "weft/tile_coverage.cuh"

namespace weft {

/// Tiles of tileSize x tileSize scores. With one table for all heads, heads is 1.
template <int tileSize, int heads, int rows, int columns>
struct BlockMask {
  static constexpr int wordsOfRow = (columns + 31) / 32;
  unsigned words[heads * rows * wordsOfRow];

  __device__ __forceinline__ const unsigned *rowOf(int head, int row) const {
    return words + ((heads > 1 ? head : 0) * rows + row) * wordsOfRow;
  }
  /// The tile of a query or key. Those outside the scores, which tiles of kernels have at their
  /// ends, are in the last one.
  template <int tiles>
  static __device__ __forceinline__ int tileOf(int position) {
    const int tile = int(unsigned(position) / unsigned(tileSize));
    return tile < tiles ? tile : tiles - 1;
  }
};

/// Whether the tile of a score exists.
template <int tileSize, int heads, int rows, int columns>
__device__ __forceinline__ bool hasBlock(const BlockMask<tileSize, heads, rows, columns> &mask,
                                         int head, int query, int key) {
  using Mask = BlockMask<tileSize, heads, rows, columns>;
  const int column = Mask::template tileOf<columns>(key);
  const unsigned word = mask.rowOf(head, Mask::template tileOf<rows>(query))[column / 32];
  return (word >> (column % 32) & 1u) != 0;
}

/// How much exists of the scores in inclusive ranges, which are inside the tensor.
template <int tileSize, int heads, int rows, int columns>
__device__ __forceinline__ TileCoverage
blockCoverage(const BlockMask<tileSize, heads, rows, columns> &mask, int head, int firstQuery,
              int lastQuery, int firstKey, int lastKey) {
  using Mask = BlockMask<tileSize, heads, rows, columns>;
  const int first = Mask::template tileOf<columns>(firstKey),
            last = Mask::template tileOf<columns>(lastKey),
            lastRow = Mask::template tileOf<rows>(lastQuery);
  unsigned any = 0, missing = 0;
#pragma unroll 1
  for (int row = Mask::template tileOf<rows>(firstQuery); row <= lastRow; ++row) {
    const unsigned *words = mask.rowOf(head, row);
#pragma unroll 1
    for (int word = first / 32; word <= last / 32; ++word) {
      const unsigned seen = (word == first / 32 ? ~0u << (first % 32) : ~0u) &
                            (word == last / 32 ? ~0u >> (31 - last % 32) : ~0u);
      any |= words[word] & seen, missing |= ~words[word] & seen;
    }
  }
  return any == 0 ? TileCoverage::empty : missing == 0 ? TileCoverage::full : TileCoverage::mixed;
}

}  // namespace weft
