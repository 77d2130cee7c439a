// Bounds of the segments of a document mask (kernel/TileBounds.h): how a loop kernel makes them,
// and what the coverage of a tile of scores asks of them.
//
// Bounds are a tensor [.., tiles, 2]: of every 32 neighbouring positions the least and the greatest
// segment. A range of positions is bounded by the tiles that it meets, so that it may seem wider
// than it is, never narrower: a tile of scores that is skipped has no visible score.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// The least of some elements for 0, the greatest for 1.
__device__ __forceinline__ int boundOf(int, int element) { return element; }
template <typename... More>
__device__ __forceinline__ int boundOf(int side, int first, int second, More... more) {
  return boundOf(side, (second < first) == (side == 0) ? second : first, more...);
}

/// The least and the greatest of a range.
struct Bounds {
  int low, high;
};

constexpr int boundedTile = 32;  ///< positions

/// Of an inclusive range of positions. Strides in elements: from a tile to the next one, and from
/// the least to the greatest. Producer warps ask, too, in few registers.
__device__ __forceinline__ Bounds boundsOf(const int *bounds, int tileStride, int sideStride,
                                           int first, int last) {
  const int *tile = bounds + Offset(unsigned(first) / boundedTile) * tileStride;
  Bounds found = {tile[0], tile[sideStride]};
#pragma unroll 1
  for (int left = int(unsigned(last) / boundedTile - unsigned(first) / boundedTile); left > 0;
       --left) {
    tile += tileStride;
    found.low = boundOf(0, found.low, tile[0]);
    found.high = boundOf(1, found.high, tile[sideStride]);
  }
  return found;
}

}  // namespace weft
