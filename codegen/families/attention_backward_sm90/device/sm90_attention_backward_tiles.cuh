// What a fused attention backward and its tiles are, their places in shared memory, and the order
// in which blocks take tiles.
//
// A tile is some keys of one head of keys; the queries of the heads that share it, or of some of
// them, are walked in blocks of `queries`. Rows of all tensors lie in panels of 64 columns (128
// bytes, swizzled): panel p of n rows is n * 128 bytes at p * n * 128. Columns past a tensor's own
// are zero.
//
// The gradient of a block of queries is made in units of 64 queries and one panel of columns, one
// warpgroup each. Sums of units lie in device memory as accumulators lie in threads: four of a
// thread together, those of all threads behind them.
#pragma once

#include "weft/sm90_heads.cuh"
#include "weft/sm90_pipeline.cuh"
#include "weft/sm90_shared.cuh"
#include "weft/sm90_swizzle.cuh"
#include "weft/types.cuh"

namespace weft::sm90 {

struct AttentionBackwardProblem {
  int queries, keys;      ///< rows of a head
  int headDim, valueDim;  ///< columns
  int heads;              ///< of queries
  int headsOfGroup;       ///< neighbours that share keys and values
  /// Of heads of queries: q, dOutput, dQ. Of the first head of a group: k, v, dK, dV.
  HeadMap q, k, v, dOutput, dQ, dK, dV;
  /// Keys behind the last one that queries see are zeroed, whatever memory has (seen_keys.cuh),
  /// where gradients of queries are sums over them.
  bool zeroesUnseen = false;
};

struct AttentionBackwardTile {
  int queries;    ///< of a block: 64 or 128
  int keys;       ///< rows: 64 a consumer warpgroup
  int headGroup;  ///< heads of tiles that are taken together, first keys first
  /// Heads of queries that share a tile's keys; 0: all of a group. Where there are fewer, several
  /// tiles have the same keys and sum parts of their gradients.
  int headsOfTile = 0;
  /// Whether tiles of keys add to the gradient of queries in the order of keys, or as they come.
  bool areSumsOrdered = true;
};

template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Row>
struct AttentionBackwardConfig {
  static constexpr int consumers = tile.keys / 64, threads = (consumers + 1) * warpgroup,
                       stages = 2;  // of blocks of queries
  static constexpr int headPanels = panelsOf(problem.headDim),
                       valuePanels = panelsOf(problem.valueDim);
  /// Columns of the WGMMAs that make gradients, and steps of 16 that make scores.
  static constexpr int headColumns = (problem.headDim + 15) / 16 * 16,
                       valueColumns = (problem.valueDim + 15) / 16 * 16;
  static constexpr int queryTiles = (problem.queries + tile.queries - 1) / tile.queries,
                       keyTiles = (problem.keys + tile.keys - 1) / tile.keys,
                       keyHeads = problem.heads / problem.headsOfGroup;
  static constexpr int headsOfTile =
                           tile.headsOfTile == 0 ? problem.headsOfGroup : tile.headsOfTile,
                       groupParts = (problem.headsOfGroup + headsOfTile - 1) / headsOfTile,
                       tileHeads = keyHeads * groupParts, tiles = keyTiles * tileHeads;
  static constexpr bool hasTail =
      problem.queries % tile.queries != 0 || problem.keys % tile.keys != 0;
  static constexpr int queryBytes = headPanels * tile.queries * rowBytes,
                       dOutputBytes = valuePanels * tile.queries * rowBytes,
                       keyBytes = headPanels * tile.keys * rowBytes,
                       valueBytes = valuePanels * tile.keys * rowBytes,
                       dScoresBytes = tile.queries / 64 * tile.keys * rowBytes,
                       rowsBytes = (tile.queries * int(sizeof(Row)) + 15) / 16 * 16,
                       blockBytes = 16;
  /// Of 64 queries; whether the registers hold both products of the next one beside a unit.
  static constexpr int parts = tile.queries / 64;
  static constexpr bool startsBoth = headColumns + valueColumns <= 128;
  static constexpr int units = tile.queries / 64 * headPanels,
                       unitsOfConsumer = (units + consumers - 1) / consumers;
  static constexpr int unitFloats = 64 * 64, unitBytes = unitFloats * 4;
  /// Of the last panel of a unit there are fewer columns.
  static constexpr int columnsOfUnit(int unit) {
    return smaller(64, headColumns - unit % headPanels * 64);
  }
  static constexpr int barriers = 2 + 4 * stages + 3 + 4 + 4 + (problem.zeroesUnseen ? 1 : 0);
  static constexpr int sharedBytes = keyBytes + valueBytes + stages * (queryBytes + dOutputBytes) +
                                     2 * dScoresBytes + units * unitBytes + subtileBytes +
                                     stages * rowsBytes + stages * blockBytes + barriers * 8 + 16;
  static constexpr int semaphores = problem.heads * queryTiles;
  /// Floats in device memory: sums of the gradients of queries.
  static constexpr Offset sumFloats = static_cast<Offset>(semaphores) * units * unitFloats;
  /// Floats behind these: parts of the gradients of a tile's keys and values, of every tile.
  static constexpr int partFloats = tile.keys * (headColumns + valueColumns),
                       partSemaphores = groupParts > 1 ? keyHeads *keyTiles *consumers : 0;
  static constexpr Offset partsFloats = groupParts > 1 ? static_cast<Offset>(tiles) * partFloats
                                                       : 0;
  /// What setmaxnreg gives.
  static constexpr int consumerRegisters = consumers == 1 ? 216 : 232, producerRegisters = 40;
  static_assert(tile.queries % 64 == 0 && tile.keys == 128);  // two warpgroups alternate
};

/// In device memory: of every block of queries of every head, the key tiles whose gradients are in
/// its sums; where these have no order, and those that add (sm90_unordered_sum.cuh). Zero between
/// launches.
template <int blocks>
struct Semaphores {
  unsigned of[blocks];
};

/// Addresses in shared memory.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Row>
struct AttentionBackwardShared {
  using C = AttentionBackwardConfig<problem, tile, Row>;
  SharedAddress start;

  __device__ __forceinline__ SharedAddress k() const { return start; }
  __device__ __forceinline__ SharedAddress v() const { return k() + C::keyBytes; }
  __device__ __forceinline__ SharedAddress q(int stage) const {
    return v() + C::valueBytes + stage * C::queryBytes;
  }
  __device__ __forceinline__ SharedAddress dOutput(int stage) const {
    return q(C::stages) + stage * C::dOutputBytes;
  }
  /// Two places: a warpgroup writes one while another may still read the other.
  __device__ __forceinline__ SharedAddress dScores(int place) const {
    return dOutput(C::stages) + place * C::dScoresBytes;
  }
  __device__ __forceinline__ SharedAddress unit(int index) const {
    return dScores(2) + index * C::unitBytes;
  }
  /// 64 x 64 rounded elements, which TMA takes from there.
  __device__ __forceinline__ SharedAddress panel() const { return unit(C::units); }
  __device__ __forceinline__ SharedAddress rows(int stage) const {
    return panel() + subtileBytes + stage * C::rowsBytes;
  }
  __device__ __forceinline__ SharedAddress block(int stage) const {
    return rows(C::stages) + stage * C::blockBytes;
  }
  __device__ __forceinline__ SharedAddress barrier(int index) const {
    return block(C::stages) + index * 8;
  }
  __device__ __forceinline__ SharedAddress keysFull() const { return barrier(0); }
  __device__ __forceinline__ SharedAddress keysEmpty() const { return barrier(1); }
  __device__ __forceinline__ SharedAddress qFull(int stage) const { return barrier(2 + stage); }
  __device__ __forceinline__ SharedAddress dOutputFull(int stage) const {
    return barrier(2 + C::stages + stage);
  }
  __device__ __forceinline__ SharedAddress rowsFull(int stage) const {
    return barrier(2 + 2 * C::stages + stage);
  }
  /// Of all three.
  __device__ __forceinline__ SharedAddress blockEmpty(int stage) const {
    return barrier(2 + 3 * C::stages + stage);
  }
  /// Of even blocks and of odd ones, which two warps add up: the units' place is one.
  __device__ __forceinline__ SharedAddress unitsFull(int own) const {
    return barrier(2 + 4 * C::stages + own);
  }
  __device__ __forceinline__ SharedAddress unitsEmpty() const { return barrier(4 + 4 * C::stages); }
  /// Two places for the number of a tile, each a word behind all barriers; `nothingSeen` is added
  /// to those that no query sees.
  __device__ __forceinline__ SharedAddress tileFull(int place) const {
    return barrier(5 + 4 * C::stages + place);
  }
  __device__ __forceinline__ SharedAddress tileEmpty(int place) const {
    return barrier(7 + 4 * C::stages + place);
  }
  /// Of both warpgroups' gradients of scores, in two places.
  __device__ __forceinline__ SharedAddress dScoresFull(int place) const {
    return barrier(9 + 4 * C::stages + place);
  }
  __device__ __forceinline__ SharedAddress dScoresEmpty(int place) const {
    return barrier(11 + 4 * C::stages + place);
  }
  /// Of keys that the producer's warp changes before consumers read them.
  __device__ __forceinline__ SharedAddress lastKeys() const { return barrier(C::barriers - 1); }
  __device__ __forceinline__ SharedAddress tileNumber(int place) const {
    return barrier(C::barriers) + place * 4;
  }
  /// A word of each consumer: how many parts of its keys' gradients were there before its own.
  __device__ __forceinline__ SharedAddress partsBefore(int consumer) const {
    return tileNumber(2) + consumer * 4;
  }
};

struct AttentionBackwardPlace {
  int keyHead, keyTile;
  int part;  ///< of the heads that share these keys
};
/// Tile `index`. The heads of a group together, so that few blocks add to the same sums; first keys
/// first: whoever waits for a semaphore waits for a tile that was taken before.
template <AttentionBackwardProblem problem, AttentionBackwardTile tile, typename Row>
__device__ __forceinline__ AttentionBackwardPlace attentionBackwardTile(int index) {
  using C = AttentionBackwardConfig<problem, tile, Row>;
  const int firstHead = index / (tile.headGroup * C::keyTiles) * tile.headGroup,
            size = smaller(tile.headGroup, C::tileHeads - firstHead),
            inGroup = index - firstHead * C::keyTiles, tileHead = firstHead + inGroup % size;
  return {tileHead / C::groupParts, inGroup / size, tileHead % C::groupParts};
}

}  // namespace weft::sm90
