// The arguments of the GEMM kernel templates of sm_90a, and what the kernel templates make of them.
//
// Emitted text names the members that its kernel has and leaves the others out:
//
//   weft::sm90::runGemm<weft::half, gemm, tile>(weft::sm90::Args{.a = &x_map, .b = &w_map,
//       .c = &y_map, .perColumn = bias, .epilogue = epilogueOp});
//
// A tensor is given by what the kernel has of it: the address of its map where TMA moves it, the
// address of its elements where threads do, or Tensor{.map = .., .elements = ..} where both do.
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
/// That an operand is read as it lies in memory; else a function (sm90_prologue.cuh).
struct NoTransform {};
/// That no block shares a tile through device memory; else the address of StreamKPartials.
struct NoPartials {};

/// Whether text gives an argument of this type. (A concept, since variables and static members
/// would become data of every module.)
template <typename Argument>
concept Given =
    !(__is_base_of(NoTransform, Argument) || __is_base_of(NoScaling, Argument) ||
      __is_base_of(NoPartials, Argument) || __is_base_of(NoSubtileOperand, Argument) ||
      __is_base_of(NoVectorOperand, Argument) || __is_base_of(NoSubtileOutput, Argument) ||
      __is_base_of(NoEpilogueReductions, Argument) || __is_base_of(AllTokens, Argument));

template <typename A, typename B, typename C, typename TransformA = NoTransform,
          typename TransformB = NoTransform, typename Scaling = NoScaling,
          typename Partials = NoPartials, typename PerElement = NoSubtileOperand,
          typename PerRow = NoVectorOperand, typename PerColumn = NoVectorOperand,
          typename Auxiliary = NoSubtileOutput, typename Reductions = NoEpilogueReductions,
          typename Softmax = NoEpilogueReductions, typename Tokens = AllTokens,
          typename Epilogue = Unchanged>
struct Args {
  A a;
  B b;
  C c;
  TransformA transformA = {};  // makes the elements of A of those in memory
  TransformB transformB = {};
  Scaling scaling = {};        // factors of rows of A and runs of k-tiles
  Partials partials = {};      // device memory of a stream-K kernel
  PerElement perElement = {};  // an operand of the epilogue of C's shape
  PerRow perRow = {};          // an operand of the epilogue with an element for each row of C,
  PerColumn perColumn = {};    // or for each column; a kernel has one of the two
  Auxiliary auxiliary = {};    // a second result of C's shape
  Reductions reductions = {};  // further results: reductions over rows or columns of C
  Softmax softmax = {};        // maxima and sums of the sub-vectors of C, which become exponentials
  Tokens tokens = {};          // how many rows or columns of C, or how much of k, are tokens
  Epilogue epilogue = {};      // what becomes of the accumulators

  static constexpr bool isTransformedA() { return Given<TransformA>; }
  static constexpr bool isTransformedB() { return Given<TransformB>; }
  static constexpr bool isScaled() { return Given<Scaling>; }
  static constexpr bool isStreamK() { return Given<Partials>; }
  static constexpr bool isLimited() { return Given<Tokens>; }
  static constexpr bool reduces() { return Given<Reductions> || Given<Softmax>; }
  /// Whether the epilogue is a function of accumulators, or of what it loads itself, alone.
  static constexpr bool isEpilogueAlone() {
    return !Given<PerElement> && !Given<PerRow> && !Given<PerColumn> && !Given<Auxiliary> &&
           !reduces();
  }
};

/// A tensor as kernel templates read it.
template <typename T>
__device__ __forceinline__ Tensor<T> tensorOf(const TensorMap *map) {
  return {{map}, nullptr};
}
template <typename T>
__device__ __forceinline__ Tensor<T> tensorOf(T *elements) {
  return {{}, elements};
}
template <typename T>
__device__ __forceinline__ Tensor<T> tensorOf(const Tensor<T> &tensor) {
  return tensor;
}

template <typename T, typename Given>
__device__ __forceinline__ SubtileOperand<T> subtileOperand(const Given &given) {
  return {tensorOf<const T>(given)};
}
template <typename T>
__device__ __forceinline__ NoSubtileOperand subtileOperand(const NoSubtileOperand &none) {
  return none;
}

template <typename T, typename Given>
__device__ __forceinline__ SubtileOutput<T> subtileOutput(const Given &given) {
  return {tensorOf<T>(given)};
}
template <typename T>
__device__ __forceinline__ NoSubtileOutput subtileOutput(const NoSubtileOutput &none) {
  return none;
}

template <typename T>
__device__ __forceinline__ RowOperand<T> vectorOperand(const T *perRow, NoVectorOperand) {
  return {perRow};
}
template <typename T>
__device__ __forceinline__ ColumnOperand<T> vectorOperand(NoVectorOperand, const T *perColumn) {
  return {perColumn};
}
__device__ __forceinline__ NoVectorOperand vectorOperand(NoVectorOperand none, NoVectorOperand) {
  return none;
}

/// What leaves beside tensors of C's shape; a kernel has one of the two.
template <typename Reductions>
__device__ __forceinline__ Reductions reductionsOf(const Reductions &reductions,
                                                   NoEpilogueReductions) {
  return reductions;
}
template <typename Softmax>
__device__ __forceinline__ Softmax reductionsOf(NoEpilogueReductions, const Softmax &softmax) {
  return softmax;
}
__device__ __forceinline__ NoEpilogueReductions reductionsOf(NoEpilogueReductions none,
                                                             NoEpilogueReductions) {
  return none;
}

/// What becomes of the accumulators. T: the element type of C.
template <typename T, typename Arguments>
__device__ __forceinline__ auto epilogueOpOf(const Arguments &args) {
  return EpilogueOp{subtileOperand<T>(args.perElement), vectorOperand(args.perRow, args.perColumn),
                    subtileOutput<T>(args.auxiliary), reductionsOf(args.reductions, args.softmax),
                    args.epilogue};
}

}  // namespace weft::sm90
