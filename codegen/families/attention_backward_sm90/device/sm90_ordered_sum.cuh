// Sums in device memory that blocks of a grid add to in a fixed order, so that the same bits come
// out every time: a semaphore counts those that have added, and copies of TMA add what lies in
// shared memory. The first one overwrites, so nothing has to be zero before.
//
// The counter is zero between launches: whoever reads the sums sets it back.
#pragma once

#include "weft/sm90_shared.cuh"

namespace weft::sm90 {

/// Waits until `before` others are done; what they wrote is seen, by copies of TMA too.
__device__ __forceinline__ void waitForSemaphore(const unsigned *counter, unsigned before) {
  unsigned done;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(counter) : "memory");
  } while (done != before);
  asm volatile("fence.proxy.async;" ::: "memory");
}
/// Lets the next one add, when copies have been waited for: `next` is how many have added.
__device__ __forceinline__ void releaseSemaphore(unsigned *counter, unsigned next) {
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(counter), "r"(next) : "memory");
}
/// Behind the last one, which has been waited for.
__device__ __forceinline__ void resetSemaphore(unsigned *counter) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(counter), "r"(0u) : "memory");
}

/// Copies floats from shared to device memory, or adds them to what is there; both places at
/// multiples of 16 bytes. Part of the thread's group of stores (commitStores, sm90_tma.cuh).
__device__ __forceinline__ void storeFloats(float *to, SharedAddress from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void addFloats(float *to, SharedAddress from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
      "r"(from), "r"(bytes)
      : "memory");
}

// ---- Words of the block's own shared memory, four of them 16-byte aligned ----
__device__ __forceinline__ void storeWords(SharedAddress to, const unsigned (&words)[4]) {
  asm volatile("st.shared::cta.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}
__device__ __forceinline__ void loadWords(unsigned (&words)[4], SharedAddress from) {
  asm volatile("ld.shared::cta.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void storeWord(SharedAddress to, unsigned word) {
  asm volatile("st.shared::cta.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ __forceinline__ unsigned loadWord(SharedAddress from) {
  unsigned word;
  asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}
__device__ __forceinline__ void storeFloats(SharedAddress to, const float (&values)[4]) {
  asm volatile("st.shared::cta.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(values[0]),
               "f"(values[1]), "f"(values[2]), "f"(values[3])
               : "memory");
}

}  // namespace weft::sm90
