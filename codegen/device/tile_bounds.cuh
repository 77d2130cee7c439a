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

/// Of an inclusive range of positions, of the tensor's row that begins at element `row`. Strides in
/// elements: from a tile to the next one, and from the least to the greatest. Producer warps ask,
/// too, in few registers: an index is one, a pointer two.
__device__ __forceinline__ Bounds boundsOf(const int *bounds, int row, int tileStride,
                                           int sideStride, int first, int last) {
  int at = row + int(unsigned(first) / boundedTile) * tileStride;
  const int end = row + int(unsigned(last) / boundedTile) * tileStride;
  Bounds found = {bounds[at], bounds[at + sideStride]};
#pragma unroll 1
  while (at < end) {
    at += tileStride;
    asm("" : "+r"(at));  // stays an index
    found.low = boundOf(0, found.low, bounds[at]);
    found.high = boundOf(1, found.high, bounds[at + sideStride]);
  }
  return found;
}

}  // namespace weft
