// Tiles of a GEMM's result that a block mask leaves nothing of: what kernel templates ask for every
// tile before they load and multiply (codegen/families/contraction/MaskedTiles.h).
#pragma once

#include "weft/block_mask.cuh"

namespace weft {

/// Of the rows and columns from (m, n) on; one table for all heads. Rows are queries, or keys.
template <int queries, int keys, bool areRowsKeys, typename Mask>
__device__ __forceinline__ bool isTileMasked(const Mask &mask, int m, int rows, int n,
                                             int columns) {
  const auto last = [](int first, int count, int end) {
    return (first + count < end ? first + count : end) - 1;
  };
  const int query = areRowsKeys ? n : m, key = areRowsKeys ? m : n;
  return blockCoverage(mask, 0, query, last(query, areRowsKeys ? columns : rows, queries), key,
                       last(key, areRowsKeys ? rows : columns, keys)) == TileCoverage::empty;
}

}  // namespace weft
