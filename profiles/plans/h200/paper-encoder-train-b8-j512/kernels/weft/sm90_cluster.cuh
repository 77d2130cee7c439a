// Clusters on sm_90a: blocks that run at the same time and write each other's shared memory. What
// every family may use of clusters: cluster.cuh.
#pragma once

#include "weft/sm90_shared.cuh"

namespace weft::sm90 {

/// This thread has come so far; blocks may then rely on each other's barriers once all threads have
/// waited.
__device__ __forceinline__ void arriveAtCluster() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
/// The same, and what this thread has done to the memory of other blocks has arrived there.
__device__ __forceinline__ void leaveCluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
__device__ __forceinline__ void waitForCluster() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}
/// What block `rank` of the cluster has where this one has `own`: for sendAccumulators and
/// arriveInBlock alone.
__device__ __forceinline__ SharedAddress addressInBlock(SharedAddress own, int rank) {
  SharedAddress address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(own), "r"(rank));
  return address;
}
/// Arrives at a barrier of any block of the cluster. Orders nothing: what released this phase's
/// memory was a wait for products, and a release would be a fence of the device in every kTile.
__device__ __forceinline__ void arriveInBlock(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Writes 16 bytes into another block's shared memory, and tells the barrier there that they have
/// landed.
__device__ __forceinline__ void sendAccumulators(SharedAddress to, SharedAddress barrier, float x,
                                                 float y, float z, float w) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%2, %3, %4, %5}, "
      "[%1];" ::"r"(to),
      "r"(barrier), "f"(x), "f"(y), "f"(z), "f"(w)
      : "memory");
}

}  // namespace weft::sm90
