// Pairs of 16-bit elements in a word, as tensor cores and wide stores take them.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// Two floats rounded to nearest even, the first in the lower half.
__device__ __forceinline__ unsigned packPair(half *, float low, float high) {
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ unsigned packPair(bfloat16 *, float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

}  // namespace weft
