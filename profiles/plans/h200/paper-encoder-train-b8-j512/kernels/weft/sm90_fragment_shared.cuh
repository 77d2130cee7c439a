// Blocks of 16 x 16 accumulators between the registers of a warp and a swizzled subtile of 64 x 64
// 16-bit elements in shared memory (sm90_swizzle.cuh), which TMA takes or brings. The four warps of
// a warpgroup have 16 rows each: lane l of warp w names row 16 w + l % 16 of the subtile, and
// there, of block b of the four side by side, chunk 2 b + l / 16. Of the eight elements that a lane
// has (fragment.cuh), two lie in a word.
#pragma once

#include "weft/pack.cuh"
#include "weft/sm90_shared.cuh"

namespace weft::sm90 {

/// Rounds the eight elements of a lane and stores them. All lanes of the warp take part.
template <typename T>
__device__ __forceinline__ void storeFragmentShared(SharedAddress row, const float (&values)[8]) {
  unsigned words[4];
#pragma unroll
  for (int w = 0; w < 4; ++w)
    words[w] = packPair(static_cast<T *>(nullptr), values[2 * w], values[2 * w + 1]);
  storeMatrices(row, words);
}
/// The converse.
template <typename T>
__device__ __forceinline__ void loadFragmentShared(float (&values)[8], SharedAddress row) {
  unsigned words[4];
  loadMatrices(words, row);
#pragma unroll
  for (int e = 0; e < 8; ++e)
    values[e] = widen(T{static_cast<unsigned short>(words[e / 2] >> e % 2 * 16)});
}

}  // namespace weft::sm90
