// Clusters of blocks (sm_90 and later): blocks of a grid that run at the same time and read each
// other's shared memory. The PTX of clusters stands here and not in ptx.cuh, so that only kernels
// in clusters change when it does.
#pragma once

#include "weft/ptx.cuh"

namespace weft::ptx {

/// Waits until every thread of every block of the cluster has arrived; shared memory written before
/// is visible after.
__device__ __forceinline__ void clusterBarrier() {
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

/// What block `rank` of the cluster holds where this block has `own`, an address in shared memory.
__device__ __forceinline__ float loadFromBlock(const float *own, int rank) {
  float value;
  asm volatile(
      "{\n\t"
      ".reg .u64 wide;\n\t"
      ".reg .u32 here, there;\n\t"
      "cvta.to.shared.u64 wide, %1;\n\t"
      "cvt.u32.u64 here, wide;\n\t"
      "mapa.shared::cluster.u32 there, here, %2;\n\t"
      "ld.shared::cluster.f32 %0, [there];\n\t"
      "}"
      : "=f"(value)
      : "l"(own), "r"(rank)
      : "memory");
  return value;
}

}  // namespace weft::ptx
