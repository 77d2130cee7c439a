// The tiles of an attention backward each of which sums one gradient: of keys, of values or of
// queries; their places in shared memory, and the order in which blocks take them.
//
// A tile is 128 rows of one head, 64 a consumer warpgroup, whose sums are at most 128 registers a
// thread. Its rows, of one or two tensors, lie as those of a SplitBackwardTile do. Of a block of
// `columns` queries or keys there are two operands, of headDim and of valueDim columns, each in a
// place of a circular buffer of `stages` equal ones:
//
//   a tile of    its rows           of a block        first, and second, which sums read
//   keys         k, v               queries           d_output, q
//   values       k                  queries           q, d_output
//   queries      q, d_output        keys              v, k
//
// The first one's place is free as soon as its product has ended, before element-wise ops and sums.
// So three places serve: of 256 columns a place is 32 KB beside 128 KB of the tile, and the second
// operand of the next block lands while this block's sums are under way.
#pragma once

#include "weft/sm90_split_backward_tiles.cuh"

namespace weft::sm90 {

enum class SingleGradient { ofKeys, ofValues, ofQueries };

/// `tile.stages` are places of operands, and what consumers are told of so many blocks.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Row>
struct SingleBackwardConfig : SplitBackwardConfig<problem, tile, Row> {
  using Base = SplitBackwardConfig<problem, tile, Row>;
  static constexpr int tiles =
      2 * Base::keyTiles * Base::keyHeads + Base::queryTiles * problem.heads;
  static constexpr int ownBytes = Base::ownHeadBytes + Base::ownValueBytes,
                       operandBytes = larger(Base::headBytes, Base::valueBytes);
  static constexpr int barriers = 2 + 4 * tile.stages + 4 + (problem.zeroesUnseen ? 1 : 0);
  static constexpr int sharedBytes =
      ownBytes + tile.stages * (operandBytes + Base::rowsBytes + Base::toldBytes) + barriers * 8 +
      16;
  /// What setmaxnreg gives: sums and products of 64 columns of more than 224 take what the producer
  /// needs for tables of tiles, beside which blocks are narrower.
  static constexpr bool isTight =
      larger(Base::headColumns, Base::valueColumns) / 2 + tile.columns > 176;
  static constexpr int consumerRegisters = isTight ? 240 : 232,
                       producerRegisters = isTight ? 24 : 40;
  /// Whether the first product of the next block has registers beside sums and their operands, so
  /// that it starts while the sums are under way.
  template <SingleGradient gradient>
  static constexpr bool startsAhead =
      consumerRegisters - 48 -
          (gradient == SingleGradient::ofValues ? Base::valueColumns : Base::headColumns) / 2 -
          tile.columns / 4 >=
      tile.columns / 2;
  static_assert(tile.rows == 128 && tile.ownStages == 1);
};

/// Addresses in shared memory.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Row>
struct SingleBackwardShared {
  using C = SingleBackwardConfig<problem, tile, Row>;
  SharedAddress start;

  /// Of the tile: keys or queries, and behind them values or gradients of the output.
  __device__ __forceinline__ SharedAddress ownHead() const { return start; }
  __device__ __forceinline__ SharedAddress ownValue() const { return start + C::ownHeadBytes; }
  __device__ __forceinline__ SharedAddress operand(int stage) const {
    return start + C::ownBytes + stage * C::operandBytes;
  }
  /// Of a block.
  __device__ __forceinline__ SharedAddress rows(int stage) const {
    return operand(tile.stages) + stage * C::rowsBytes;
  }
  __device__ __forceinline__ SharedAddress block(int stage) const {
    return rows(tile.stages) + stage * C::toldBytes;
  }
  __device__ __forceinline__ SharedAddress barrier(int index) const {
    return block(tile.stages) + index * 8;
  }
  __device__ __forceinline__ SharedAddress ownFull() const { return barrier(0); }
  __device__ __forceinline__ SharedAddress ownEmpty() const { return barrier(1); }
  __device__ __forceinline__ SharedAddress operandFull(int stage) const {
    return barrier(2 + stage);
  }
  __device__ __forceinline__ SharedAddress operandEmpty(int stage) const {
    return operandFull(tile.stages + stage);
  }
  /// What consumers are told of a block, and rows of its queries.
  __device__ __forceinline__ SharedAddress rowsFull(int stage) const {
    return operandFull(2 * tile.stages + stage);
  }
  __device__ __forceinline__ SharedAddress blockEmpty(int stage) const {
    return operandFull(3 * tile.stages + stage);
  }
  /// Two places for the number of a tile, each a word behind all barriers.
  __device__ __forceinline__ SharedAddress tileFull(int place) const {
    return operandFull(4 * tile.stages + place);
  }
  __device__ __forceinline__ SharedAddress tileEmpty(int place) const {
    return operandFull(4 * tile.stages + 2 + place);
  }
  /// Of keys that the producer's warp changes before consumers read them.
  __device__ __forceinline__ SharedAddress lastKeys() const { return barrier(C::barriers - 1); }
  __device__ __forceinline__ SharedAddress tileNumber(int place) const {
    return barrier(C::barriers) + place * 4;
  }
};

struct SingleBackwardPlace {
  SingleGradient gradient;
  SplitBackwardPlace at;
};
/// Tile `index`: those of all heads that take longest, then, of a group of heads together, tiles of
/// keys and of their values in turn, which read the same queries, before tiles of queries.
template <AttentionBackwardProblem problem, SplitBackwardTile tile, typename Row, typename KeyOrder,
          typename QueryOrder>
__device__ __forceinline__ SingleBackwardPlace singleBackwardTile(int index, const KeyOrder &ofKeys,
                                                                  const QueryOrder &ofQueries) {
  using C = SingleBackwardConfig<problem, tile, Row>;
  constexpr int longOfKeys = 2 * tile.longKeyTiles * C::keyHeads,
                longOfQueries = tile.longQueryTiles * problem.heads;
  // Of tiles of `heads` heads from `firstHead` and `firstRank` on.
  const auto keyTile = [&](int number, int firstHead, int heads, int firstRank) {
    const int head = firstHead + number / 2 % heads, rank = firstRank + number / 2 / heads;
    return SingleBackwardPlace{
        number % 2 == 0 ? SingleGradient::ofKeys : SingleGradient::ofValues,
        {true, head * problem.headsOfGroup, ofKeys.template at<C::keyTiles>(rank)}};
  };
  const auto queryTile = [&](int head, int rank) {
    return SingleBackwardPlace{SingleGradient::ofQueries,
                               {false, head, ofQueries.template at<C::queryTiles>(rank)}};
  };
  if constexpr (longOfKeys > 0)
    if (index < longOfKeys) return keyTile(index, 0, C::keyHeads, 0);
  if constexpr (longOfQueries > 0)
    if (index < longOfKeys + longOfQueries)
      return queryTile((index - longOfKeys) % problem.heads, (index - longOfKeys) / problem.heads);
  constexpr int keysLeft = 2 * (C::keyTiles - tile.longKeyTiles),
                left = keysLeft + (C::queryTiles - tile.longQueryTiles) * problem.headsOfGroup;
  const int other = index - longOfKeys - longOfQueries,
            firstHead = other / (left * tile.headGroup) * tile.headGroup,
            size = smaller(tile.headGroup, C::keyHeads - firstHead),
            inGroup = other - firstHead * left;
  if (inGroup < keysLeft * size) return keyTile(inGroup, firstHead, size, tile.longKeyTiles);
  const int ofQuery = inGroup - keysLeft * size, heads = size * problem.headsOfGroup;
  return queryTile(firstHead * problem.headsOfGroup + ofQuery % heads,
                   tile.longQueryTiles + ofQuery / heads);
}

}  // namespace weft::sm90
