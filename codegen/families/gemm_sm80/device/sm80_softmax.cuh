// A local softmax at the end of an epilogue from sm_80 on: of the blocks side by side that a warp
// has, which hold whole sub-vectors.
#pragma once

#include "weft/sm80_gemm.cuh"
#include "weft/sub_vectors.cuh"

namespace weft::sm80 {

/// An epilogue, and behind it exponentials, with maxima and sums of sub-vectors. The kernel
/// template calls it as a constant.
template <SubVectors subVectors, typename T, typename Epilogue>
class WithLocalSoftmax {
public:
  __device__ __forceinline__ WithLocalSoftmax(T *maxima, T *sums, const Epilogue &epilogueOp)
      : maxima(maxima), sums(sums), epilogueOp(epilogueOp) {}
  __device__ __forceinline__ void operator()(float (&values)[8], const Fragment &at) const {
    epilogueOp(values, at);
  }
  /// All blocks of a warp side by side; `at`: of the first.
  template <GemmProblem gemm, Tile tile, int blocks>
  __device__ __forceinline__ void runRowEpilogue(float (&values)[blocks][8],
                                                 const Fragment &at) const {
    localSoftmax<subVectors, gemm.m, gemm.n, gemm.n % tile.n != 0>(values, at, maxima, sums);
  }

private:
  T *maxima, *sums;
  const Epilogue &epilogueOp;
};
template <SubVectors subVectors, typename T, typename Epilogue>
constexpr bool isRowEpilogue<WithLocalSoftmax<subVectors, T, Epilogue>> = true;

template <SubVectors subVectors, typename T, typename Epilogue>
__device__ __forceinline__ WithLocalSoftmax<subVectors, T, Epilogue> withLocalSoftmax(
    T *maxima, T *sums, const Epilogue &epilogueOp) {
  return {maxima, sums, epilogueOp};
}

}  // namespace weft::sm80
