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
};

/// The tile of a query or key.
template <int tileSize>
__device__ __forceinline__ int blockOf(int position) {
  return int(unsigned(position) / unsigned(tileSize));
}

/// The first position of a tile, as a number that the compiler does not look through: else it keeps
/// what it computes from every single position in registers.
template <int tileSize>
__device__ __forceinline__ unsigned blockStart(int position) {
  unsigned start = unsigned(position) & -unsigned(tileSize);
  asm("" : "+r"(start));
  return start;
}

/// Whether the tile of a score exists. Outside the scores, where tiles of kernels end, it gives
/// anything.
template <int tileSize, int heads, int rows, int columns>
__device__ __forceinline__ bool hasBlock(const BlockMask<tileSize, heads, rows, columns> &mask,
                                         int head, int query, int key) {
  const int row = blockOf<tileSize>(int(blockStart<tileSize>(query))),
            column = blockOf<tileSize>(int(blockStart<tileSize>(key))), word = column / 32,
            last = BlockMask<tileSize, heads, rows, columns>::wordsOfRow - 1;
  const unsigned bits = mask.rowOf(head < heads ? head : heads - 1,
                                   row < rows ? row : rows - 1)[word < last ? word : last];
  return (bits >> (column % 32) & 1u) != 0;
}

/// How much exists of the scores in inclusive ranges, which are inside the tensor and have at most
/// 32 tiles of keys. Producer warps ask, too, in few registers.
template <int tileSize, int heads, int rows, int columns>
__device__ __forceinline__ TileCoverage
blockCoverage(const BlockMask<tileSize, heads, rows, columns> &mask, int head, int firstQuery,
              int lastQuery, int firstKey, int lastKey) {
  const int first = blockOf<tileSize>(firstKey), last = blockOf<tileSize>(lastKey),
            firstRow = blockOf<tileSize>(firstQuery);
  const unsigned *words = mask.rowOf(head, firstRow) + first / 32;
  const bool spansTwo = last / 32 > first / 32;
  unsigned any = 0, all = ~0u;
#pragma unroll 1
  for (int left = blockOf<tileSize>(lastQuery) - firstRow; left >= 0; --left) {
    unsigned bits = words[0] >> (first % 32);
    if (spansTwo) bits |= words[1] << (32 - first % 32);
    any |= bits, all &= bits;
    words += BlockMask<tileSize, heads, rows, columns>::wordsOfRow;
  }
  const unsigned asked = ~0u >> (31 - (last - first));
  return (any & asked) == 0       ? TileCoverage::empty
         : (all & asked) == asked ? TileCoverage::full
                                  : TileCoverage::mixed;
}

}  // namespace weft
