// Sums in device memory that blocks of a grid add to as they come, by copies of TMA: nobody waits
// but for the copy of the first one, which overwrites, so nothing has to be zero before. Roundings
// depend on who comes when: two launches need not leave the same bits.
//
// One word counts: how many have a place, in its upper half, and how many of their copies are done.
// It is zero between launches: whoever reads the sums sets it back (resetSemaphore,
// sm90_ordered_sum.cuh).
#pragma once

namespace weft::sm90 {

constexpr unsigned onePlace = 1u << 16;
constexpr int mostUnordered = (1 << 16) - 1;  // that add to one sum

/// What the word is when all `count` copies are done.
constexpr unsigned allAdded(unsigned count) { return count * (onePlace + 1); }

/// How many have come before; the first one overwrites. Whoever asks has to add at once.
__device__ __forceinline__ unsigned takePlace(unsigned *counter) {
  unsigned before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(onePlace)
               : "memory");
  return before / onePlace;
}
/// Waits until some copy is done: the first one, as all others wait. Copies of TMA see it.
__device__ __forceinline__ void waitForFirst(const unsigned *counter) {
  unsigned counted;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(counted) : "l"(counter) : "memory");
  } while (counted % onePlace == 0);
  asm volatile("fence.proxy.async;" ::: "memory");
}
/// Counts a copy that has been waited for.
__device__ __forceinline__ void countAdded(unsigned *counter) {
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(1u) : "memory");
}

}  // namespace weft::sm90
