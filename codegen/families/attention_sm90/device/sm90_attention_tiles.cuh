// What a fused attention and its tiles are, their places in shared memory, and the order in which
// blocks take tiles.
//
// A tile is some query rows of one head, or of the heads of a group together
// (sm90_packed_heads.cuh); its keys are walked in blocks of `keys`. Rows of queries, keys, values
// and output lie in panels of 64 columns (128 bytes, swizzled): panel p of n rows is n
// * 128 bytes at p * n * 128. Columns past a tensor's own are zero.
#pragma once

#include "weft/sm90_heads.cuh"
#include "weft/sm90_pipeline.cuh"
#include "weft/sm90_shared.cuh"
#include "weft/sm90_swizzle.cuh"
#include "weft/sm90_tile_order.cuh"
#include "weft/types.cuh"

namespace weft::sm90 {

struct AttentionProblem {
  int queries, keys;      ///< rows of a head
  int headDim, valueDim;  ///< columns
  int heads;
  HeadMap q, k, v, output;
  bool isPacked = false;  ///< rows are of packed tokens; `queries` and `keys` are bounds
  /// Of packed tokens: a query sees no key behind its sequence's last token, by masks that nothing
  /// else says of. Else such keys are zeros.
  bool endsAtTokens = false;
  /// Keys and values lie in pages of so many rows: their maps have one dimension more, the page,
  /// behind those of heads. 0: they lie in one piece.
  int pageRows = 0;
  /// Values behind the last key that a tile sees are zeroed, whatever memory has (seen_keys.cuh).
  bool zeroesUnseen = false;
};

struct AttentionTile {
  int queries;        ///< rows: 64 a consumer warpgroup
  int keys;           ///< of a block
  int stages;         ///< blocks of keys and of values in shared memory, each
  int queryStages;    ///< tiles of queries in shared memory
  bool isOrdered;     ///< consumers issue their GEMMs one after another
  bool staysInQ;      ///< the output leaves through the place of the queries
  int headGroup;      ///< heads whose tiles are taken together, by an order; 0: head by head
  int longTiles = 0;  ///< the first ones of the order, which are taken of all heads before others
  int residents = 0;  ///< blocks that share a multiprocessor; 0: two of one consumer, else one
  /// Consumers that share 64 rows and take blocks of keys in turn (sm90_key_consumers.cuh); 0: each
  /// consumer has other rows.
  int keyConsumers = 0;
  /// Neighbouring heads that share keys and values and whose queries are rows of one tile
  /// (sm90_packed_heads.cuh); 1: rows are the queries of one head. masksDiffer: masks are not the
  /// same for all of these heads.
  int packedHeads = 1;
  bool masksDiffer = false;
};

template <AttentionProblem problem, AttentionTile tile>
struct AttentionConfig {
  static constexpr int keyConsumers = tile.keyConsumers == 0 ? 1 : tile.keyConsumers,
                       rowParts = tile.queries / 64, consumers = rowParts * keyConsumers,
                       threads = (consumers + 1) * warpgroup;
  /// Of the blocks of keys of consumers that share rows: each has a circular buffer of stages.
  static constexpr int stagesOfBuffer = tile.stages / keyConsumers;
  static_assert(keyConsumers == 1 || (rowParts == 1 && !tile.isOrdered));
  static_assert(tile.stages % keyConsumers == 0);
  /// Whole queries of all packed heads in the 64 rows of a part, in as many of its rows; of a tile.
  static constexpr int queriesOfPart = 64 / tile.packedHeads,
                       usedRows = queriesOfPart * tile.packedHeads,
                       queriesOfTile = rowParts * queriesOfPart;
  static_assert(tile.packedHeads == 1 || !problem.isPacked);
  static_assert(problem.heads % tile.packedHeads == 0 && tile.headGroup % tile.packedHeads == 0,
                "whole groups of heads");
  static constexpr int queryPanels = panelsOf(problem.headDim),
                       valuePanels = panelsOf(problem.valueDim);
  /// Columns of the WGMMAs that make the output, and steps of 16 that make scores.
  static constexpr int valueColumns = (problem.valueDim + 15) / 16 * 16,
                       headSteps = (problem.headDim + 15) / 16;
  static constexpr int queryTiles = (problem.queries + queriesOfTile - 1) / queriesOfTile,
                       keyTiles = (problem.keys + tile.keys - 1) / tile.keys,
                       tiles = queryTiles * (problem.heads / tile.packedHeads);
  static constexpr int queryBytes = queryPanels * tile.queries * rowBytes,
                       keyBytes = queryPanels * tile.keys * rowBytes,
                       valueBytes = valuePanels * tile.keys * rowBytes,
                       outputBytes = tile.staysInQ ? 0 : valuePanels * tile.queries * rowBytes;
  /// What TMA brings of a tile of queries.
  static constexpr int loadedQueryBytes = queryPanels * rowParts * usedRows * rowBytes;
  /// What a consumer that shares rows has summed, in floats: statistics and output of each thread.
  static constexpr int partBytes = warpgroup * (4 + valueColumns / 2) * 4,
                       partsBytes = (keyConsumers - 1) * partBytes;
  /// Rows of one box of keys or values.
  static constexpr int boxKeys =
      problem.pageRows == 0 ? tile.keys : smaller(tile.keys, problem.pageRows);
  static_assert(tile.keys % boxKeys == 0 &&
                    (problem.pageRows == 0 || problem.pageRows % boxKeys == 0),
                "a block of keys is whole pages, or a page whole blocks");
  static constexpr int barriers = 2 * tile.queryStages + 4 * tile.stages + 4 +
                                  (problem.isPacked || problem.zeroesUnseen ? 1 : 0) +
                                  2 * (keyConsumers - 1);
  static constexpr int sharedBytes =
      tile.queryStages * queryBytes + tile.stages * (keyBytes + valueBytes) + outputBytes +
      partsBytes + barriers * 8 + 16 + (problem.isPacked ? 4 * 32 * 4 : 0);
  /// What setmaxnreg gives.
  static constexpr int consumerRegisters = tile.residents == 3 ? 128
                                           : consumers == 1    ? 216
                                           : consumers == 2    ? 232
                                                               : 160,
                       producerRegisters = tile.residents == 3 || consumers == 3 ? 32 : 40;
  static_assert(!tile.staysInQ || (valuePanels <= queryPanels && tile.queryStages == 1));
};

/// The stage of a block of keys, and how often its buffer went round.
struct BlockStage {
  int stage, parity;
};
/// The same held for later. In one register where values are zeroed, too: a producer has few.
template <bool isPacked>
struct HeldBlockStage : BlockStage {};
template <>
struct HeldBlockStage<true> {
  unsigned word;
  HeldBlockStage() = default;
  __device__ __forceinline__ explicit HeldBlockStage(const BlockStage &at)
      : word(unsigned(at.stage * 2 + at.parity)) {}
  __device__ __forceinline__ operator BlockStage() const { return {int(word / 2), int(word % 2)}; }
};
/// Of the `pass`-th block in buffer `buffer`.
template <int stagesOfBuffer>
__device__ __forceinline__ BlockStage blockStage(int buffer, unsigned pass) {
  const StageOfPass<stagesOfBuffer> own(pass);
  return {buffer * stagesOfBuffer + own.stage, own.parity};
}

/// The buffers that a producer fills: block after block of a tile, in turn.
template <int buffers, int stagesOfBuffer>
struct BlockBuffers {
  unsigned passed[buffers] = {};
  int buffer = 0;
  __device__ __forceinline__ void startTile() { buffer = 0; }
  __device__ __forceinline__ BlockStage next() {
    BlockStage at{};
#pragma unroll
    for (int own = 0; own < buffers; ++own)  // a variable index would be one into local memory
      if (own == buffer) at = blockStage<stagesOfBuffer>(own, passed[own]++);
    buffer = buffer + 1 == buffers ? 0 : buffer + 1;
    return at;
  }
};

/// Addresses in shared memory.
template <AttentionProblem problem, AttentionTile tile>
struct AttentionShared {
  using C = AttentionConfig<problem, tile>;
  SharedAddress start;

  __device__ __forceinline__ SharedAddress q(int stage) const {
    return start + stage * C::queryBytes;
  }
  __device__ __forceinline__ SharedAddress k(int stage) const {
    return q(tile.queryStages) + stage * C::keyBytes;
  }
  __device__ __forceinline__ SharedAddress v(int stage) const {
    return k(tile.stages) + stage * C::valueBytes;
  }
  __device__ __forceinline__ SharedAddress output() const {
    return tile.staysInQ ? q(0) : v(tile.stages);
  }
  __device__ __forceinline__ SharedAddress barrier(int index) const {
    return v(tile.stages) + C::outputBytes + C::partsBytes + index * 8;
  }
  __device__ __forceinline__ SharedAddress qFull(int stage) const { return barrier(stage); }
  __device__ __forceinline__ SharedAddress qEmpty(int stage) const {
    return barrier(tile.queryStages + stage);
  }
  __device__ __forceinline__ SharedAddress kFull(int stage) const {
    return barrier(2 * tile.queryStages + stage);
  }
  __device__ __forceinline__ SharedAddress kEmpty(int stage) const {
    return kFull(tile.stages + stage);
  }
  __device__ __forceinline__ SharedAddress vFull(int stage) const {
    return kFull(2 * tile.stages + stage);
  }
  __device__ __forceinline__ SharedAddress vEmpty(int stage) const {
    return kFull(3 * tile.stages + stage);
  }
  /// Two places for the number of a tile, each a word behind all barriers.
  __device__ __forceinline__ SharedAddress tileFull(int place) const {
    return kFull(4 * tile.stages + place);
  }
  __device__ __forceinline__ SharedAddress tileEmpty(int place) const {
    return kFull(4 * tile.stages + 2 + place);
  }
  /// Of values that the producer's warp changes before consumers read them.
  __device__ __forceinline__ SharedAddress lastValues() const { return kFull(4 * tile.stages + 4); }
  /// What consumer `other` of a row, counted from 1, has summed, and its barriers.
  __device__ __forceinline__ SharedAddress part(int other) const {
    return v(tile.stages) + C::outputBytes + (other - 1) * C::partBytes;
  }
  __device__ __forceinline__ SharedAddress partFull(int other) const {
    return barrier(C::barriers - 2 * other);
  }
  __device__ __forceinline__ SharedAddress partEmpty(int other) const {
    return barrier(C::barriers - 2 * other + 1);
  }
  __device__ __forceinline__ SharedAddress tileNumber(int place) const {
    return barrier(C::barriers) + place * 4;
  }
  /// Four words for each lane of the producer's warp.
  __device__ __forceinline__ SharedAddress sequenceWords() const {
    return barrier(C::barriers) + 16;
  }
};

struct AttentionTilePlace {
  int head, firstQuery;  // of packed heads the first
};
/// Tile `index`. Head by head where all tiles take equally long; else the heads of a group
/// together, those tiles first that see most keys.
template <AttentionProblem problem, AttentionTile tile, typename Order>
__device__ __forceinline__ AttentionTilePlace attentionTile(int index, const Order &order) {
  using C = AttentionConfig<problem, tile>;
  if constexpr (tile.headGroup == 0 || problem.isPacked)
    return {index / C::queryTiles * tile.packedHeads, index % C::queryTiles * C::queriesOfTile};
  constexpr int heads = problem.heads / tile.packedHeads;  // packed ones count as one
  const auto placeOf = [&](int head, int rank) {
    return AttentionTilePlace{head * tile.packedHeads,
                              order.template at<C::queryTiles>(rank) * C::queriesOfTile};
  };
  constexpr int firstOnes = tile.longTiles * heads;
  if constexpr (firstOnes > 0)
    if (index < firstOnes) return placeOf(index % heads, index / heads);
  constexpr int group = tile.headGroup == 0 ? 1 : tile.headGroup / tile.packedHeads,
                left = C::queryTiles - tile.longTiles;
  const int other = index - firstOnes, firstHead = other / (group * left) * group,
            size = smaller(group, heads - firstHead), inGroup = other - firstHead * left;
  return placeOf(firstHead + inGroup % size, tile.longTiles + inGroup / size);
}

}  // namespace weft::sm90
