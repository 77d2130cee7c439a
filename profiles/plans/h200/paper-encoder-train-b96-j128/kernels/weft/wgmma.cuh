// What every WGMMA needs around it: fences, groups, and descriptors of operands in shared memory.
// The instructions themselves, a header for each pair of types: wgmma_*.cuh.
#pragma once

#include "weft/sm90_shared.cuh"

namespace weft::sm90 {

/// Before the first GEMM that follows any other access to its accumulators.
__device__ __forceinline__ void fenceWgmma() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commitWgmma() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until all but the newest `pending` groups of products have ended.
template <int pending>
__device__ __forceinline__ void waitForWgmma() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Describes an operand in subtiles of 128-byte rows swizzled over 1024 bytes, as boxes of 128
/// bytes land. Contiguous along k: rows are m or n, one subtile holds 64 of k. Contiguous along m
/// or n: rows are k, subtiles of 64 are `subtileBytes` apart.
__device__ __forceinline__ unsigned long long describeOperand(SharedAddress start,
                                                              int subtileBytes) {
  return static_cast<unsigned long long>((start & 0x3FFFF) >> 4) |
         static_cast<unsigned long long>(subtileBytes >> 4) << 16 |
         static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 62;
}

}  // namespace weft::sm90
