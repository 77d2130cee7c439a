// Orders in which the tiles of a head are taken, those first that take longest: which is the tile
// of a rank. Without masks, and under a causal one, a rule; under block masks a table that the
// compiler has counted.
#pragma once

namespace weft::sm90 {

struct FirstRowsFirst {
  template <int count>
  __device__ __forceinline__ int at(int rank) const {
    return rank;
  }
};
struct LastRowsFirst {
  template <int count>
  __device__ __forceinline__ int at(int rank) const {
    return count - 1 - rank;
  }
};
template <int size>
struct TileTable {
  unsigned short tiles[size];
};
template <int size>
struct TableOrder {
  const TileTable<size> &table;  // in device memory

  template <int count>
  __device__ __forceinline__ int at(int rank) const {
    static_assert(count == size);
    return table.tiles[rank];
  }
};

}  // namespace weft::sm90
