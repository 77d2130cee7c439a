// Tiles that a block mask leaves nothing of, in the place of those behind the last token
// (sm90_tiles.cuh): producer and consumers leave out the same ones, and the epilogue masks what it
// is given. Blocks of a cluster that load for each other leave out tiles together alone.
#pragma once

#include "weft/masked_tiles.cuh"
#include "weft/sm90_tiles.cuh"

namespace weft::sm90 {

template <int queries, int keys, bool areRowsKeys, typename Mask>
struct MaskedTiles {
  static constexpr bool isLimited = true, areUnread = false;
  const Mask &mask;
  template <Tile tile>
  __device__ __forceinline__ bool isUnused(const TileStart &at) const {
    return isTileMasked<queries, keys, areRowsKeys>(mask, at.m - multicastRank<tile>() * tile.m,
                                                    tile.m * tile.multicastB, at.n, tile.n);
  }
};
template <int queries, int keys, bool areRowsKeys, typename Mask>
__device__ __forceinline__ MaskedTiles<queries, keys, areRowsKeys, Mask> maskedTiles(
    const Mask &mask) {
  return {mask};
}

}  // namespace weft::sm90
