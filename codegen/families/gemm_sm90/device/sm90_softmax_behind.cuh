// What follows a local softmax at the end of an epilogue of the GEMM kernel template: a function of
// the exponentials of a lane in a block of 16 x 16 and of where they lie, which stores what it
// makes of them. The exponentials themselves leave as they would without.
#pragma once

#include "weft/sm90_softmax.cuh"

namespace weft::sm90 {

/// A local softmax, and behind it the function.
template <typename Softmax, typename Behind>
struct SoftmaxFollowedBy {
  static constexpr int count = 0;
  Softmax softmax;
  Behind behind;

  /// Of the elements of a subtile that the lanes of a warp hold. `at`: of the first block.
  template <GemmProblem gemm, Tile tile>
  __device__ __forceinline__ void applySoftmax(float (&values)[4][8], const Fragment &at) const {
    softmax.template applySoftmax<gemm, tile>(values, at);
#pragma unroll
    for (int block = 0; block < 4; ++block)
      behind(values[block], Fragment{at.batch, at.row, at.column + block * 16});
  }
};
template <typename Softmax, typename Behind>
constexpr bool isPerSubtile<SoftmaxFollowedBy<Softmax, Behind>> = true;

template <typename Softmax, typename Behind>
__device__ __forceinline__ SoftmaxFollowedBy<Softmax, Behind> followedBy(const Softmax &softmax,
                                                                         const Behind &behind) {
  return {softmax, behind};
}

}  // namespace weft::sm90
