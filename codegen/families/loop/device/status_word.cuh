// The smallest of what threads of a grid say, in one word of global memory.
#pragma once

namespace weft {

/// The word becomes the value where that is less.
__device__ __forceinline__ void lowerWord(unsigned long long *word, unsigned long long value) {
  asm volatile("red.global.min.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

}  // namespace weft
