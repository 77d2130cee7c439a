// The keys that queries see, up to the last one. Masks that compare keys with a count known at run
// time (lengths of sequences, of a cache) leave none behind it, and what lies there in keys and
// values may be no numbers: 0 times that is none, either. Kernels whose problem says so
// (zeroesUnseen) read zeros in its place: of values forward and of keys backward, since scores and
// their gradients are selected by the mask; sm_80 forward of keys, too.
#pragma once

#include "weft/tile_coverage.cuh"
#include "weft/types.cuh"
#include "weft/warp.cuh"

namespace weft {

/// From which key on masks leave none of `keys` to queries [firstQuery, lastQuery] of a head. The
/// lanes of a warp ask for 32 places at once, first far apart, then near; all of them call
/// together.
template <typename Coverage>
__device__ __forceinline__ int seenKeys(const Coverage &coverage, int head, int firstQuery,
                                        int lastQuery, int keys) {
  constexpr int lanes = 32;
  int least = 0, most = keys;
#pragma unroll 1
  while (least < most) {
    const int step = (most - least + lanes - 1) / lanes,
              key = least + (lanes - 1 - int(threadIdx.x % lanes)) * step;
    const unsigned seen = ptx::ballot(
        key < most && coverage(head, firstQuery, lastQuery, key, keys - 1) != TileCoverage::empty);
    if (seen == 0) return least;
    const int last = lanes - 1 - ptx::lowestBit(seen);
    most = smaller(most, least + (last + 1) * step);
    least += last * step + 1;
  }
  return least;
}
/// The same of neighbouring heads that share keys.
template <typename Coverage>
__device__ __forceinline__ int seenKeysOfHeads(const Coverage &coverage, int firstHead, int heads,
                                               int firstQuery, int lastQuery, int keys) {
  int most = 0;
#pragma unroll 1
  for (int head = firstHead; head < firstHead + heads; ++head)
    most = larger(most, seenKeys(coverage, head, firstQuery, lastQuery, keys));
  return most;
}
/// How many rows of a block of keys these heads see; all where that is up to the last key.
template <int rows, typename Coverage>
__device__ __forceinline__ int seenRows(const Coverage &coverage, int firstHead, int heads,
                                        int firstQuery, int lastQuery, int firstKey, int keys) {
  constexpr int lanes = 32;
#pragma unroll 1
  for (int first = (rows - 1) / lanes * lanes; first >= 0; first -= lanes) {
    const int key = firstKey + first + lanes - 1 - int(threadIdx.x % lanes);
    bool isSeen = false;
#pragma unroll 1
    for (int head = firstHead; head < firstHead + heads; ++head)
      isSeen |= key < smaller(firstKey + rows, keys) &&
                coverage(head, firstQuery, lastQuery, key, keys - 1) != TileCoverage::empty;
    const unsigned seen = ptx::ballot(isSeen);
    if (seen == 0) continue;
    const int most = first + lanes - ptx::lowestBit(seen);
    return firstKey + most == keys ? rows : most;
  }
  return 0;
}

}  // namespace weft
