// How kernels call the GEMM skeleton with an operand that is transformed on load
// (sm90_prologue.cuh, which includes this header): by the operand, of which prologueGemm is told.
#pragma once

#include "weft/sm90_tiles.cuh"

namespace weft::sm90 {

/// The same by the operand that is transformed.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, typename Function,
          typename SubtileInput, typename VectorInput, typename SubtileOutput, typename Epilogue>
__device__ __forceinline__ void prologueGemmA(Tensor<const Raw> a, Tensor<const T> b, Tensor<T> c,
                                              const Function &transform,
                                              const SubtileInput &subtile,
                                              const VectorInput &vector,
                                              const SubtileOutput &output,
                                              const Epilogue &epilogue) {
  prologueGemm<T, Raw, gemm, tile, true>(a, b, c, transform, subtile, vector, output, epilogue);
}
template <typename T, typename Raw, GemmProblem gemm, Tile tile, typename Function,
          typename SubtileInput, typename VectorInput, typename SubtileOutput, typename Epilogue>
__device__ __forceinline__ void prologueGemmB(Tensor<const T> a, Tensor<const Raw> b, Tensor<T> c,
                                              const Function &transform,
                                              const SubtileInput &subtile,
                                              const VectorInput &vector,
                                              const SubtileOutput &output,
                                              const Epilogue &epilogue) {
  prologueGemm<T, Raw, gemm, tile, false>(b, a, c, transform, subtile, vector, output, epilogue);
}

}  // namespace weft::sm90
