// How kernels call the GEMM skeleton (sm90_gemm.cuh, which includes this header): with fewer
// arguments than scaledGemm has, found there by the type of its arguments.
#pragma once

#include "weft/sm90_epilogue.cuh"

namespace weft::sm90 {

/// That the accumulators of a k-tile's products are added as they are; else KTileFactors
/// (sm90_scaled.cuh).
struct NoScaling {
  static constexpr bool isScaled = false;
  template <GemmProblem gemm, Tile tile>
  struct OfRows {
    __device__ __forceinline__ OfRows(const NoScaling &, const Subtiles<gemm, tile> &) {}
  };
};

/// The same where no operand is scaled, where nothing is summed, where no second tensor is made,
/// and where no vector is read either.
template <typename T, GemmProblem gemm, Tile tile, typename SubtileInput, typename VectorInput,
          typename SubtileOutput, typename EpilogueReductions, typename Epilogue>
__device__ __forceinline__ void runGemm(
    Tensor<const typename ElementsOf<T>::A> a, Tensor<const typename ElementsOf<T>::B> b,
    Tensor<typename ElementsOf<T>::C> c, const SubtileInput &subtile, const VectorInput &vector,
    const SubtileOutput &output, const EpilogueReductions &reductions, const Epilogue &epilogue) {
  scaledGemm<T, gemm, tile>(a, b, c, NoScaling{}, subtile, vector, output, reductions, epilogue);
}
template <typename T, GemmProblem gemm, Tile tile, typename SubtileInput, typename VectorInput,
          typename SubtileOutput, typename Epilogue>
__device__ __forceinline__ void runGemm(Tensor<const typename ElementsOf<T>::A> a,
                                        Tensor<const typename ElementsOf<T>::B> b,
                                        Tensor<typename ElementsOf<T>::C> c,
                                        const SubtileInput &subtile, const VectorInput &vector,
                                        const SubtileOutput &output, const Epilogue &epilogue) {
  runGemm<T, gemm, tile>(a, b, c, subtile, vector, output, NoEpilogueReductions{}, epilogue);
}
template <typename T, GemmProblem gemm, Tile tile, typename SubtileInput, typename VectorInput,
          typename Epilogue>
__device__ __forceinline__ void runGemm(Tensor<const typename ElementsOf<T>::A> a,
                                        Tensor<const typename ElementsOf<T>::B> b,
                                        Tensor<typename ElementsOf<T>::C> c,
                                        const SubtileInput &subtile, const VectorInput &vector,
                                        const Epilogue &epilogue) {
  runGemm<T, gemm, tile>(a, b, c, subtile, vector, NoSubtileOutput{}, epilogue);
}
template <typename T, GemmProblem gemm, Tile tile, typename SubtileInput, typename Epilogue>
__device__ __forceinline__ void runGemm(Tensor<const typename ElementsOf<T>::A> a,
                                        Tensor<const typename ElementsOf<T>::B> b,
                                        Tensor<typename ElementsOf<T>::C> c,
                                        const SubtileInput &subtile, const Epilogue &epilogue) {
  runGemm<T, gemm, tile>(a, b, c, subtile, NoVectorOperand{}, epilogue);
}

}  // namespace weft::sm90
