// Which heads and which tile of rows a block of sm80_attention.cuh takes, by its number: blocks
// begin in this order. Without block masks a rule; under one a table that the compiler has counted,
// so that no tile which sees far more than others begins when all others are done:
//
//    the first `longTiles` of the table, of all heads   ──>   the others, head by head
#pragma once

namespace weft::sm80 {

/// group: packed heads, which are neighbours.
struct BlockPlace {
  int group, tile, split;
};

/// Under a causal mask the last rows take longest.
struct LastRowsFirst {
  template <int groups, int tiles, int splits>
  __device__ __forceinline__ BlockPlace of(int block) const {
    return {block / (tiles * splits), tiles - 1 - block % tiles, block / tiles % splits};
  }
};

template <int size>
struct TileTable {
  unsigned short tiles[size];
};
template <int size, int longTiles>
struct TableOrder {
  const TileTable<size> &table;  // in device memory

  template <int groups, int tiles, int splits>
  __device__ __forceinline__ BlockPlace of(int block) const {
    static_assert(tiles == size && longTiles < size);
    constexpr int others = size - longTiles, ofLong = longTiles * groups * splits;
    if (block < ofLong)
      return {block / splits % groups, table.tiles[block / (splits * groups)], block % splits};
    const int rest = block - ofLong;
    return {rest / (others * splits), table.tiles[longTiles + rest % others],
            rest / others % splits};
  }
};

}  // namespace weft::sm80
