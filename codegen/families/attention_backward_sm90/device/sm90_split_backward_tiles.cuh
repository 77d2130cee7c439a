// The tiles of an attention backward whose gradients are made apart: of keys or of queries, their
// places in shared memory, and the order in which blocks take them.
//
// Both kinds have the same shape. A tile is `rows` keys of one head of keys, or queries of one
// head; what it is summed over, the queries of the heads that share the keys, or the keys, is
// walked in blocks of `columns`. Of both there are two tensors in shared memory: keys and values,
// queries and gradients of the output, of headDim and valueDim columns. They lie in panels of 64
// columns (128 bytes, swizzled): panel p of n rows is n * 128 bytes at p * n * 128. Columns past a
// tensor's own are zero.
#pragma once

#include "weft/sm90_attention_backward_tiles.cuh"
#include "weft/sm90_tile_order.cuh"

namespace weft::sm90 {

struct SplitBackwardTile {
  int rows;       ///< keys or queries of a tile: 64 a consumer warpgroup
  int columns;    ///< queries or keys of a block
  int stages;     ///< blocks in shared memory
  int ownStages;  ///< tiles in shared memory
  int headGroup;  ///< heads of keys whose tiles are taken together
  /// The first ones of their orders, which are taken of all heads before others.
  int longKeyTiles = 0, longQueryTiles = 0;
};

template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Row>
struct SplitBackwardConfig {
  static constexpr int consumers = tile.rows / 64, threads = (consumers + 1) * warpgroup;
  static constexpr int headPanels = panelsOf(problem.headDim),
                       valuePanels = panelsOf(problem.valueDim);
  /// Columns of the WGMMAs that make gradients, and steps of 16 that make scores.
  static constexpr int headColumns = (problem.headDim + 15) / 16 * 16,
                       valueColumns = (problem.valueDim + 15) / 16 * 16;
  static constexpr int keyTiles = (problem.keys + tile.rows - 1) / tile.rows,
                       queryTiles = (problem.queries + tile.rows - 1) / tile.rows,
                       keyBlocks = (problem.keys + tile.columns - 1) / tile.columns,
                       queryBlocks = (problem.queries + tile.columns - 1) / tile.columns,
                       keyHeads = problem.heads / problem.headsOfGroup,
                       tiles = keyTiles * keyHeads + queryTiles * problem.heads;
  static constexpr int boxRows = smaller(tile.columns, 64);  // of what TMA loads
  static constexpr int ownHeadBytes = headPanels * tile.rows * rowBytes,
                       ownValueBytes = valuePanels * tile.rows * rowBytes,
                       headBytes = headPanels * tile.columns * rowBytes,
                       valueBytes = valuePanels * tile.columns * rowBytes,
                       rowsBytes = (tile.columns * int(sizeof(Row)) + 15) / 16 * 16, toldBytes = 16;
  static constexpr int barriers =
      2 * tile.ownStages + 3 * tile.stages + 4 + (problem.zeroesUnseen ? 1 : 0);
  static constexpr int sharedBytes =
      tile.ownStages * (ownHeadBytes + ownValueBytes) +
      tile.stages * (headBytes + valueBytes + rowsBytes + toldBytes) + barriers * 8 + 16;
  /// What setmaxnreg gives: two blocks of one consumer share a multiprocessor.
  static constexpr int consumerRegisters = consumers == 1 ? 216 : 232, producerRegisters = 40;
  /// How many products of the next block registers hold beside a block's sums and their operands:
  /// these start while the sums are under way.
  template <bool ofKeys>
  static constexpr int productsAhead = [] {
    constexpr int sums = (headColumns + (ofKeys ? valueColumns : 0)) / 2,
                  operands = tile.columns / (ofKeys ? 2 : 4), product = tile.columns / 2,
                  free = consumerRegisters - 48 - sums - operands;
    return free >= 2 * product ? 2 : free >= product ? 1 : 0;
  }();
  static_assert(tile.rows % 64 == 0 && consumers <= 2 && tile.columns % 32 == 0 &&
                tile.columns % boxRows == 0 && tile.stages >= 2);
};

/// Addresses in shared memory.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Row>
struct SplitBackwardShared {
  using C = SplitBackwardConfig<problem, tile, Row>;
  SharedAddress start;

  /// Of a tile: keys or queries, and behind them values or gradients of the output.
  __device__ __forceinline__ SharedAddress ownHead(int stage) const {
    return start + stage * (C::ownHeadBytes + C::ownValueBytes);
  }
  __device__ __forceinline__ SharedAddress ownValue(int stage) const {
    return ownHead(stage) + C::ownHeadBytes;
  }
  /// Of a block.
  __device__ __forceinline__ SharedAddress head(int stage) const {
    return ownHead(tile.ownStages) + stage * (C::headBytes + C::valueBytes);
  }
  __device__ __forceinline__ SharedAddress value(int stage) const {
    return head(stage) + C::headBytes;
  }
  __device__ __forceinline__ SharedAddress rows(int stage) const {
    return head(tile.stages) + stage * C::rowsBytes;
  }
  __device__ __forceinline__ SharedAddress block(int stage) const {
    return rows(tile.stages) + stage * C::toldBytes;
  }
  __device__ __forceinline__ SharedAddress barrier(int index) const {
    return block(tile.stages) + index * 8;
  }
  __device__ __forceinline__ SharedAddress ownFull(int stage) const { return barrier(stage); }
  __device__ __forceinline__ SharedAddress ownEmpty(int stage) const {
    return barrier(tile.ownStages + stage);
  }
  __device__ __forceinline__ SharedAddress blockFull(int stage) const {
    return barrier(2 * tile.ownStages + stage);
  }
  __device__ __forceinline__ SharedAddress rowsFull(int stage) const {
    return blockFull(tile.stages + stage);
  }
  /// Of both.
  __device__ __forceinline__ SharedAddress blockEmpty(int stage) const {
    return blockFull(2 * tile.stages + stage);
  }
  /// Two places for the number of a tile, each a word behind all barriers.
  __device__ __forceinline__ SharedAddress tileFull(int place) const {
    return blockFull(3 * tile.stages + place);
  }
  __device__ __forceinline__ SharedAddress tileEmpty(int place) const {
    return blockFull(3 * tile.stages + 2 + place);
  }
  /// Of keys that the producer's warp changes before consumers read them.
  __device__ __forceinline__ SharedAddress lastKeys() const { return barrier(C::barriers - 1); }
  __device__ __forceinline__ SharedAddress tileNumber(int place) const {
    return barrier(C::barriers) + place * 4;
  }
};

struct SplitBackwardPlace {
  bool ofKeys;
  int head;  ///< of a tile of keys the first one that shares them
  int tile;
};
/// Tile `index`: those of all heads that take longest, then, of a group of heads together, tiles of
/// keys, of four products a score, before tiles of queries, of three.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Row, typename KeyOrder,
          typename QueryOrder>
__device__ __forceinline__ SplitBackwardPlace splitBackwardTile(int index, const KeyOrder &ofKeys,
                                                                const QueryOrder &ofQueries) {
  using C = SplitBackwardConfig<problem, tile, Row>;
  constexpr int longOfKeys = tile.longKeyTiles * C::keyHeads,
                longOfQueries = tile.longQueryTiles * problem.heads;
  const auto keyTile = [&](int head, int rank) {
    return SplitBackwardPlace{true, head * problem.headsOfGroup,
                              ofKeys.template at<C::keyTiles>(rank)};
  };
  const auto queryTile = [&](int head, int rank) {
    return SplitBackwardPlace{false, head, ofQueries.template at<C::queryTiles>(rank)};
  };
  if constexpr (longOfKeys > 0)
    if (index < longOfKeys) return keyTile(index % C::keyHeads, index / C::keyHeads);
  if constexpr (longOfQueries > 0)
    if (index < longOfKeys + longOfQueries)
      return queryTile((index - longOfKeys) % problem.heads, (index - longOfKeys) / problem.heads);
  constexpr int keysLeft = C::keyTiles - tile.longKeyTiles,
                left = keysLeft + (C::queryTiles - tile.longQueryTiles) * problem.headsOfGroup;
  const int other = index - longOfKeys - longOfQueries,
            firstHead = other / (left * tile.headGroup) * tile.headGroup,
            size = smaller(tile.headGroup, C::keyHeads - firstHead),
            inGroup = other - firstHead * left;
  if (inGroup < keysLeft * size)
    return keyTile(firstHead + inGroup % size, tile.longKeyTiles + inGroup / size);
  const int ofQuery = inGroup - keysLeft * size, heads = size * problem.headsOfGroup;
  return queryTile(firstHead * problem.headsOfGroup + ofQuery % heads,
                   tile.longQueryTiles + ofQuery / heads);
}

}  // namespace weft::sm90
