// Which tiles a block of a persistent kernel takes, and in what order they follow each other.
//
// Static persistent: of n blocks (or clusters of blocks that share a tile), block i takes tiles i,
// i + n, i + 2 n, ... Group-M: tiles of a matrix in groups of a few along m, which are taken
// together before the next along n, so that what runs at one time shares operands in L2.
#pragma once

namespace weft::sm90 {

/// Which of the `blocks` neighbouring blocks that share something this one is.
template <int blocks>
__device__ __forceinline__ int rankAmong() {
  return blocks == 1 ? 0 : blockIdx.x % blocks;
}

/// The tile that this block takes first, and how far it is to its next.
template <int blocksPerTile>
__device__ __forceinline__ int firstPersistentTile() {
  return blockIdx.x / blocksPerTile;
}
template <int blocksPerTile>
__device__ __forceinline__ int persistentTileStride() {
  return gridDim.x / blocksPerTile;
}

/// A tile of a matrix, counted in tiles.
struct TileOfGroup {
  int m, n;
};
/// Tile `index` of tilesM x tilesN in the order of groups of groupM.
template <int tilesM, int tilesN, int groupM>
__device__ __forceinline__ TileOfGroup groupedTile(int index) {
  constexpr int perGroup = groupM * tilesN;
  const int group = index / perGroup, inGroup = index % perGroup;
  // Of the group that is not whole, if there is one: divisors are constants.
  constexpr int lastRows = tilesM % groupM;
  const bool isWhole = lastRows == 0 || group < tilesM / groupM;
  const int row = isWhole ? inGroup % groupM : inGroup % (lastRows == 0 ? 1 : lastRows);
  const int column = isWhole ? inGroup / groupM : inGroup / (lastRows == 0 ? 1 : lastRows);
  return {group * groupM + row, column};
}

/// The same where `tilesM` is known at run time; index < tilesM * tilesN.
template <int tilesN, int groupM>
__device__ __forceinline__ TileOfGroup groupedTile(int index, int tilesM) {
  constexpr int perGroup = groupM * tilesN;
  const int group = index / perGroup, inGroup = index % perGroup, left = tilesM - group * groupM,
            rows = left < groupM ? left : groupM;
  return {group * groupM + inGroup % rows, inGroup / rows};
}

}  // namespace weft::sm90
