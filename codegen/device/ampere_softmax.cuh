// A local softmax at the end of an epilogue from sm_80 on: of the blocks side by side that a warp has, which hold whole sub-vectors.
#pragma once

#include "weft/ampere_contraction.cuh"
#include "weft/sub_vectors.cuh"

namespace weft::ampere {

/// An epilogue, and behind it exponentials, with maxima and sums of sub-vectors. The skeleton calls it as a constant.
template <SubVectors subVectors, typename T, typename Epilogue> class WithLocalSoftmax {
public:
  __device__ __forceinline__ WithLocalSoftmax(T *maxima, T *sums, const Epilogue &finish) : maxima(maxima), sums(sums), finish(finish) {}
  __device__ __forceinline__ void operator()(float (&values)[8], const Fragment &at) const { finish(values, at); }
  /// All blocks of a warp side by side; `at`: of the first.
  template <Product product, Tile tile, int blocks> __device__ __forceinline__ void finishRow(float (&values)[blocks][8], const Fragment &at) const {
    localSoftmax<subVectors, product.m, product.n, product.n % tile.n != 0>(values, at, maxima, sums);
  }

private:
  T *maxima, *sums;
  const Epilogue &finish;
};
template <SubVectors subVectors, typename T, typename Epilogue> constexpr bool finishesRows<WithLocalSoftmax<subVectors, T, Epilogue>> = true;

template <SubVectors subVectors, typename T, typename Epilogue>
__device__ __forceinline__ WithLocalSoftmax<subVectors, T, Epilogue> withLocalSoftmax(T *maxima, T *sums, const Epilogue &finish) {
  return {maxima, sums, finish};
}

}  // namespace weft::ampere
