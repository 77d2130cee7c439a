// What follows a local softmax at the end of an epilogue from sm_80 on: a function of the
// exponentials of a lane in a block of 16 x 16 and of where they lie, which stores what it makes of
// them. The exponentials themselves leave as they would without.
#pragma once

#include "weft/sm80_softmax.cuh"

namespace weft::sm80 {

/// An epilogue that ends with a local softmax, and behind it the function. The kernel template
/// calls it as a constant.
template <typename Softmax, typename Behind>
class SoftmaxFollowedBy {
public:
  __device__ __forceinline__ SoftmaxFollowedBy(const Softmax &softmax, const Behind &behind)
      : softmax(softmax), behind(behind) {}
  __device__ __forceinline__ void operator()(float (&values)[8], const Fragment &at) const {
    softmax(values, at);
  }
  /// All blocks of a warp side by side; `at`: of the first.
  template <GemmProblem gemm, Tile tile, int blocks>
  __device__ __forceinline__ void runRowEpilogue(float (&values)[blocks][8],
                                                 const Fragment &at) const {
    softmax.template runRowEpilogue<gemm, tile>(values, at);
#pragma unroll
    for (int block = 0; block < blocks; ++block)
      behind(values[block], Fragment{at.batch, at.row, at.column + block * 16});
  }

private:
  const Softmax &softmax;
  const Behind &behind;
};
template <typename Softmax, typename Behind>
constexpr bool isRowEpilogue<SoftmaxFollowedBy<Softmax, Behind>> = true;

template <typename Softmax, typename Behind>
__device__ __forceinline__ SoftmaxFollowedBy<Softmax, Behind> followedBy(const Softmax &softmax,
                                                                         const Behind &behind) {
  return {softmax, behind};
}

}  // namespace weft::sm80
