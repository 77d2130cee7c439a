// Tiles that a block mask leaves nothing of, in the place of those behind the last token
// (sm80_gemm.cuh): nobody loads or multiplies for them, and the epilogue masks what it is given.
#pragma once

#include "weft/masked_tiles.cuh"
#include "weft/sm80_gemm.cuh"

namespace weft::sm80 {

template <int tileM, int tileN, int queries, int keys, bool areRowsKeys, typename Mask>
struct MaskedTiles {
  const Mask &mask;
  __device__ __forceinline__ bool isUnused(const TileStart &at) const {
    return isTileMasked<queries, keys, areRowsKeys>(mask, at.m, tileM, at.n, tileN);
  }
};
template <int tileM, int tileN, int queries, int keys, bool areRowsKeys, typename Mask>
__device__ __forceinline__ MaskedTiles<tileM, tileN, queries, keys, areRowsKeys, Mask> maskedTiles(
    const Mask &mask) {
  return {mask};
}

}  // namespace weft::sm80
