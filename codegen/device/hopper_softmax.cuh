// A local softmax at the end of an epilogue of the contraction skeleton: of every panel by itself, as sub-vectors are 64 columns at most and
// panels 64 wide.
#pragma once

#include "weft/hopper_store.cuh"
#include "weft/sub_vectors.cuh"

namespace weft::hopper {

/// Where maxima and sums of sub-vectors go.
template <SubVectors subVectors, typename T> struct SubVectorOutputs {
  static constexpr int count = 0;
  T *maxima, *sums;

  /// Replaces the elements of a panel that the lanes of a warp hold. `at`: of the first block.
  template <Product product, Tile tile> __device__ __forceinline__ void finish(float (&values)[4][8], const Fragment &at) const {
    localSoftmax<subVectors, product.m, product.n, product.n % tile.n != 0>(values, at, maxima, sums);
  }
};
template <SubVectors subVectors, typename T> constexpr bool isOfPanels<SubVectorOutputs<subVectors, T>> = true;

/// The same of two pointers.
template <SubVectors subVectors, typename T> __device__ __forceinline__ SubVectorOutputs<subVectors, T> localSoftmax(T *maxima, T *sums) {
  return {maxima, sums};
}

}  // namespace weft::hopper
