// Tiles of a GEMM whose columns are packed tokens, where nothing reads those behind the last one:
// blocks take the tiles that have any, as if the result had no others. The functions are those that
// sm90_tiles.cuh has for every kind of tokens, of a type that is found by its arguments. They stand
// apart from UnreadRowTokens there, since measurements of all GEMMs are of that header's text.
#pragma once

#include "weft/sm90_tiles.cuh"

namespace weft::sm90 {

struct CountedColumnTokens {
  static constexpr bool isLimited = false, areUnread = true;
  int count;
  template <Tile tile>
  __device__ __forceinline__ bool isUnused(const TileStart &) const {
    return false;
  }
  /// Tiles along n that have tokens.
  template <GemmProblem gemm, Tile tile>
  __device__ __forceinline__ int tilesN() const {
    return (smaller(larger(count, 0), int(gemm.n)) + tile.n - 1) / tile.n;
  }
};

template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ int countTiles(const CountedColumnTokens &tokens) {
  return TileConfig<gemm, tile>::tilesM * tokens.tilesN<gemm, tile>();
}

/// In groups of rows, as groupedTile() has them.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ TileStart tileStart(const CountedColumnTokens &tokens, int index) {
  static_assert(gemm.batch == 1);
  constexpr int tilesM = TileConfig<gemm, tile>::tilesM;
  const int perGroup = tile.groupM * tokens.tilesN<gemm, tile>(), group = index / perGroup,
            inGroup = index % perGroup, rows = smaller(tilesM - group * tile.groupM, tile.groupM);
  return {0, (group * tile.groupM + inGroup % rows) * tile.m, inGroup / rows * tile.n};
}

}  // namespace weft::sm90
