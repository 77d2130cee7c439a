// Elements as they are stored, loaded where the program says so and not where they are used.
#pragma once

#include "weft/ptx.cuh"

namespace weft {

/// 32 bits.
__device__ __forceinline__ unsigned loadWord(const void *from) {
  unsigned words[1];
  ptx::loadInOrder(words, from);
  return words[0];
}
/// 16 bits.
__device__ __forceinline__ unsigned loadBits(const void *from) {
  unsigned short bits;
  ptx::loadInOrder(bits, from);
  return bits;
}

}  // namespace weft
