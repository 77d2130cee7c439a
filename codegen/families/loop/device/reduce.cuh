// Reductions across the threads that share a row. Every thread of the row receives the result.
// Orders of addition are fixed, so results are reproducible bit by bit.
#pragma once

#include "weft/ptx.cuh"

namespace weft {

/// The two reductions that rows need, with their neutral elements.
struct Sum {
  static constexpr float neutral = 0.0f;
  __device__ __forceinline__ static float apply(float a, float b) { return a + b; }
};
struct Maximum {
  static constexpr float neutral = __builtin_bit_cast(float, 0xFF800000u);
  __device__ __forceinline__ static float apply(float a, float b) { return ptx::maximum(a, b); }
};

/// Over groups of `threads` neighbouring lanes, a power of two of at most 32; all lanes of the warp
/// take part.
template <typename Operation, int threads>
__device__ __forceinline__ float reduceInWarp(float value) {
#pragma unroll
  for (int mask = threads / 2; mask > 0; mask /= 2)
    value = Operation::apply(value, ptx::shuffleXor(value, mask));
  return value;
}

/// Over groups of `threads` neighbouring threads, a multiple of 32. `scratch` holds one float for
/// each warp of the block and is used by one reduction only; all threads of the block take part.
template <typename Operation, int threads>
__device__ __forceinline__ float reduceInBlock(float value, float *scratch) {
  constexpr int warps = threads / 32;
  value = reduceInWarp<Operation, 32>(value);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  ptx::barrier();
  const int first = threadIdx.x / threads * warps;
  value = scratch[first];
#pragma unroll
  for (int warp = 1; warp < warps; ++warp) value = Operation::apply(value, scratch[first + warp]);
  return value;
}

/// Over groups of `threads` neighbouring threads, a power of two, by a tree in shared memory: half
/// as many add in each of log2(threads) steps. `scratch` holds one float for each thread of the
/// block; else as reduceInBlock.
template <typename Operation, int threads>
__device__ __forceinline__ float reduceByTree(float value, float *scratch) {
  const int own = threadIdx.x % threads;
  float *row = scratch + (threadIdx.x - own);
  row[own] = value;
  ptx::barrier();
#pragma unroll
  for (int half = threads / 2; half > 0; half /= 2) {
    if (own < half) row[own] = Operation::apply(row[own], row[own + half]);
    ptx::barrier();
  }
  return row[0];
}

/// As reduceByTree, by the first thread of the group, which walks the array alone.
template <typename Operation, int threads>
__device__ __forceinline__ float reduceLinearly(float value, float *scratch) {
  const int own = threadIdx.x % threads;
  float *row = scratch + (threadIdx.x - own);
  row[own] = value;
  ptx::barrier();
  if (own == 0) {
    for (int thread = 1; thread < threads; ++thread) value = Operation::apply(value, row[thread]);
    row[0] = value;
  }
  ptx::barrier();
  return row[0];
}

template <int threads>
__device__ __forceinline__ float warpSum(float value) {
  return reduceInWarp<Sum, threads>(value);
}
template <int threads>
__device__ __forceinline__ float warpMax(float value) {
  return reduceInWarp<Maximum, threads>(value);
}
template <int threads>
__device__ __forceinline__ float blockSum(float value, float *scratch) {
  return reduceInBlock<Sum, threads>(value, scratch);
}
template <int threads>
__device__ __forceinline__ float blockMax(float value, float *scratch) {
  return reduceInBlock<Maximum, threads>(value, scratch);
}
template <int threads>
__device__ __forceinline__ float treeSum(float value, float *scratch) {
  return reduceByTree<Sum, threads>(value, scratch);
}
template <int threads>
__device__ __forceinline__ float treeMax(float value, float *scratch) {
  return reduceByTree<Maximum, threads>(value, scratch);
}
template <int threads>
__device__ __forceinline__ float linearSum(float value, float *scratch) {
  return reduceLinearly<Sum, threads>(value, scratch);
}
template <int threads>
__device__ __forceinline__ float linearMax(float value, float *scratch) {
  return reduceLinearly<Maximum, threads>(value, scratch);
}

}  // namespace weft
