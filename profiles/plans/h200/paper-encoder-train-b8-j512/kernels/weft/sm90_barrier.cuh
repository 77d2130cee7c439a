// Barriers of sm_90a. An mbarrier is 8 bytes in shared memory that count arrivals and bytes: a
// phase ends when all have arrived and all expected bytes have landed. A named barrier is one of
// some warps of the block.
#pragma once

#include "weft/sm90_shared.cuh"

namespace weft::sm90 {

__device__ __forceinline__ void initializeBarrier(SharedAddress barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialized barriers visible to TMA; the block still has to synchronize.
__device__ __forceinline__ void publishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives and tells how many bytes the copies of this phase bring, out-of-bounds parts of their
/// boxes included.
__device__ __forceinline__ void arriveExpecting(SharedAddress barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Waits until the phase of this parity has ended; of a fresh barrier, the phase before the first
/// (parity 1) has.
__device__ __forceinline__ void wait(SharedAddress barrier, int parity) {
  int done;
  do {
    asm volatile(
        "{\n\t.reg .pred done;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
        "selp.b32 %0, 1, 0, done;\n\t}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (!done);
}

// ---- Named barriers of some warps of the block ----

/// A warp comes as one: ptxas may leave the thread that alone did something behind, and would let
/// it arrive a second time.
__device__ __forceinline__ void synchronize(int name, int threads) {
  __syncwarp();
  asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory");
}
__device__ __forceinline__ void arriveAt(int name, int threads) {
  __syncwarp();
  asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory");
}

}  // namespace weft::sm90
