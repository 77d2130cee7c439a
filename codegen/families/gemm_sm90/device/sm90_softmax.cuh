// A local softmax at the end of an epilogue of the GEMM kernel template: of every subtile by
// itself, as sub-vectors are 64 columns at most and subtiles 64 wide.
#pragma once

#include "weft/sm90_epilogue.cuh"
#include "weft/sub_vectors.cuh"

namespace weft::sm90 {

/// Where maxima and sums of sub-vectors go.
template <SubVectors subVectors, typename T>
struct SubVectorOutputs {
  static constexpr int count = 0;
  T *maxima, *sums;

  /// Replaces the elements of a subtile that the lanes of a warp hold. `at`: of the first block.
  template <GemmProblem gemm, Tile tile>
  __device__ __forceinline__ void applySoftmax(float (&values)[4][8], const Fragment &at) const {
    localSoftmax<subVectors, gemm.m, gemm.n, gemm.n % tile.n != 0>(values, at, maxima, sums);
  }
};
template <SubVectors subVectors, typename T>
constexpr bool isPerSubtile<SubVectorOutputs<subVectors, T>> = true;

/// The same of two pointers.
template <SubVectors subVectors, typename T>
__device__ __forceinline__ SubVectorOutputs<subVectors, T> localSoftmax(T *maxima, T *sums) {
  return {maxima, sums};
}

}  // namespace weft::sm90
