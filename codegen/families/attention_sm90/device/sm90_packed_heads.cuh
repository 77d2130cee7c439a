// Rows of a tile that are the queries of all heads of a group, which share keys and values: where
// few queries of one head would leave most of a tile empty, those of the group fill it, and its
// keys and values are read once.
//
//    row of a part   0   1  ..  G-1   G  G+1 ..        64 / G * G .. 63
//    head            0   1  ..  G-1   0   1  ..        of none, where G does not divide 64
//    query           0   0  ..   0    1   1  ..
//
// A part is the 64 rows of a consumer. TMA moves its rows as one box a panel: the map's second
// dimension is that of the group's heads, its third that of queries. What a box leaves of a part is
// anything, and stays in rows that nothing reads.
#pragma once

#include "weft/sm90_heads.cuh"

namespace weft::sm90 {

/// The head and the query of a row.
struct RowPlace {
  int head, query;
};
/// Of row `row` of a part that begins with `query` of the group's first head.
template <int packedHeads>
__device__ __forceinline__ RowPlace placeOfPackedRow(int firstHead, int query, int row) {
  return {firstHead + row % packedHeads, query + row / packedHeads};
}

/// A box of all heads of a group, from `query` and `column` on. `head`: any of the group.
template <HeadMap map>
__device__ __forceinline__ void loadPackedHeads(SharedAddress to, const TensorMap *from,
                                                SharedAddress barrier, int column, int query,
                                                int head) {
  static_assert(map.dimensions <= 4, "a tensor map has five dimensions");
  const int at[5] = {column, 0, query, headCoordinate<map, 0>(head), headCoordinate<map, 1>(head)};
  loadBox<map.dimensions + 1>(to, from, barrier, at);
}
template <HeadMap map>
__device__ __forceinline__ void storePackedHeads(const TensorMap *to, SharedAddress from,
                                                 int column, int query, int head) {
  static_assert(map.dimensions <= 4, "a tensor map has five dimensions");
  const int at[5] = {column, 0, query, headCoordinate<map, 0>(head), headCoordinate<map, 1>(head)};
  storeBox<map.dimensions + 1>(to, from, at);
}

}  // namespace weft::sm90
