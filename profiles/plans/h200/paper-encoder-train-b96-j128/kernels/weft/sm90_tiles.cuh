// The shape of the GEMM kernel template (sm90_gemm.cuh): what a GEMM and a tile are, what follows
// from them, and the places in shared memory that its roles hand to each other.
#pragma once

#include "weft/sm90_pipeline.cuh"
#include "weft/sm90_shared.cuh"
#include "weft/sm90_swizzle.cuh"
#include "weft/sm90_tile_scheduler.cuh"
#include "weft/tensor_map.cuh"
#include "weft/vector.cuh"

namespace weft::sm90 {

/// How A or B lies in memory: element strides of its outer axis (m or n), of k and of the batch;
/// one of the first two is 1.
struct Operand {
  Offset outer, k, batch;
  bool usesTma;  // whether TMA loads it: rows start at multiples of 16 bytes
  __host__ __device__ constexpr bool isAlongK() const { return k == 1; }
};

/// C is contiguous along n. usesTma: TMA stores it. operandBytes: of an element of A and B; of one
/// byte they lie along k. isPaired: rows of a C of floats start at multiples of two.
struct GemmProblem {
  Offset batch, m, n, k;
  Operand a, b;
  Offset strideCm, batchStrideC;
  bool usesTma;
  int operandBytes = 2;
  bool isPaired = false;
};

/// tileM: 64, 128 or 256; tileN: 64, 128, 192 or 256. groupM: tiles along m that are taken together
/// before the next along n, so that what runs at one time shares k-tiles in L2. epilogueStages:
/// subtiles of 64 x 64 elements of C in flight a consumer. splitK: blocks of a cluster that share
/// the k-tiles of one tile, and each finishes a part of its subtiles (sm90_split_k.cuh).
/// multicastB: blocks of a cluster that take neighbouring tiles along m, each of which loads a part
/// of the k-tiles of B for all of them.
struct Tile {
  int m, n, stages, epilogueStages, groupM, splitK;
  bool isPingPong;
  int multicastB = 1;
};

/// Where a tensor is: the map of it for what TMA moves, the address of element zero for what
/// threads do.
template <typename T>
struct Tensor {
  const TensorMap *map;
  T *elements;
};

/// Element types of a gemm: one for A, B and C, or three.
template <typename TypeA, typename TypeB, typename TypeC>
struct Elements {
  using A = TypeA;
  using B = TypeB;
  using C = TypeC;
};
template <typename T>
struct ElementsOf : Elements<T, T, T> {};
template <typename A, typename B, typename C>
struct ElementsOf<Elements<A, B, C>> : Elements<A, B, C> {};

constexpr int partialTileBytes = 64 * 64 * 4;  // of accumulators of a subtile
// Named barriers, one for every consumer: its own threads, the order in which they multiply, and
// who has its accumulators (sm90_epilogue_reduction.cuh).
constexpr int consumerBarrier = 1, orderBarrier = 4, partialsStored = 6, partialsReduced = 8;

/// What follows from a GEMM and a tile.
template <GemmProblem gemm, Tile tile>
struct TileConfig {
  static constexpr int consumers = 2, threads = (1 + consumers) * warpgroup;
  static constexpr int rowBlocks =
      tile.m / 64 / (tile.isPingPong ? 1 : consumers);  // of 64 rows, a consumer
  static constexpr int bytesA = tile.m * rowBytes, bytesB = tile.n * rowBytes,
                       stageBytes = bytesA + bytesB;
  static constexpr int epilogueStagesBytes = tile.epilogueStages * subtileBytes;
  static constexpr int subtiles = rowBlocks * tile.n / 64;  // of a consumer
  static constexpr int partialsBytes =
      (subtiles + tile.splitK - 1) / tile.splitK * (tile.splitK - 1) * partialTileBytes;
  static constexpr int partialsAt = tile.stages * stageBytes + consumers * epilogueStagesBytes;
  static constexpr int barriersAt = partialsAt + (tile.isPingPong ? 1 : consumers) * partialsBytes;
  static constexpr int sharedBytes =
      barriersAt + 8 * (2 * tile.stages + consumers * tile.epilogueStages + consumers);
  static constexpr int tileK = rowBytes / gemm.operandBytes;  // elements of k in a k-tile
  static constexpr int kTiles = int((gemm.k + tileK - 1) / tileK);
  static constexpr int tilesM = int((gemm.m + tile.m - 1) / tile.m),
                       tilesN = int((gemm.n + tile.n - 1) / tile.n);
  static constexpr int tiles = int(gemm.batch) * tilesM * tilesN;
  static constexpr bool areAllTma = gemm.a.usesTma && gemm.b.usesTma;
  static constexpr int accumulators = rowBlocks * tile.n / 2;  // accumulators of a thread
  static constexpr int consumerRegisters = !areAllTma ? 200 : accumulators >= 192 ? 240 : 232;
  static constexpr int producerRegisters = 504 - 2 * consumerRegisters;
};

/// Which block of its cluster this one is, where a cluster works on one tile.
template <Tile tile>
__device__ __forceinline__ int rankInCluster() {
  return rankAmong<tile.splitK>();
}
/// The same among blocks that share k-tiles of B.
template <Tile tile>
__device__ __forceinline__ int multicastRank() {
  return rankAmong<tile.multicastB>();
}
/// The tile that this block takes first, and how far it is to its next.
template <Tile tile>
__device__ __forceinline__ int firstTile() {
  return firstPersistentTile<tile.splitK>();
}
template <Tile tile>
__device__ __forceinline__ int nextTile() {
  return persistentTileStride<tile.splitK>();
}

/// The tiles that a consumer of this block takes, and which of their rows: consumers take tiles in
/// turn, or halves of the same.
template <GemmProblem gemm, Tile tile>
struct TilesOfConsumer {
  int first, firstRow;
  static constexpr int tilesAtOnce = tile.isPingPong ? 2 : 1;
  int stride = tilesAtOnce * nextTile<tile>();
  __device__ __forceinline__ explicit TilesOfConsumer(int consumer)
      : first(firstTile<tile>() + (tile.isPingPong ? consumer * nextTile<tile>() : 0)),
        firstRow(tile.isPingPong ? 0 : consumer * TileConfig<gemm, tile>::rowBlocks * 64) {}
  /// Or behind the last one.
  __device__ __forceinline__ bool isLast(int index) const {
    return index + stride >= TileConfig<gemm, tile>::tiles;
  }
};

/// The k-tiles of a tile that this block multiplies, from `first` on.
struct KTileRange {
  int first, count;
};
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ KTileRange kTilesOfBlock() {
  constexpr int kTiles = TileConfig<gemm, tile>::kTiles;
  const int rank = rankInCluster<tile>(), first = rank * kTiles / tile.splitK;
  return {first, (rank + 1) * kTiles / tile.splitK - first};
}

/// The first element of a tile.
struct TileStart {
  int batch, m, n;
};
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ TileStart tileStart(int index) {
  using P = TileConfig<gemm, tile>;
  constexpr int perBatch = P::tilesM * P::tilesN;
  const TileOfGroup at = groupedTile<P::tilesM, P::tilesN, tile.groupM>(index % perBatch);
  return {index / perBatch, at.m * tile.m, at.n * tile.n};
}

/// Which tiles hold nothing but rows (columns) of C behind the last packed token. Their epilogue
/// gives zeros whatever it is given, so that nobody loads or multiplies for them. Blocks of a
/// cluster that take neighbouring tiles along m leave them out together. Where nothing reads these
/// rows, no block takes such a tile.
struct AllTokens {
  static constexpr bool isLimited = false, areUnread = false;
  template <Tile tile>
  __device__ __forceinline__ bool isUnused(const TileStart &) const {
    return false;
  }
};
struct RowTokens {
  static constexpr bool isLimited = true, areUnread = false;
  int count;
  template <Tile tile>
  __device__ __forceinline__ bool isUnused(const TileStart &at) const {
    return at.m - multicastRank<tile>() * tile.m >= count;
  }
};
struct UnreadRowTokens {
  static constexpr bool isLimited = false, areUnread = true;
  int count;
  template <Tile tile>
  __device__ __forceinline__ bool isUnused(const TileStart &) const {
    return false;
  }
  /// Tiles along m that have tokens; all blocks of a cluster take one.
  template <GemmProblem gemm, Tile tile>
  __device__ __forceinline__ int tilesM() const {
    constexpr int rows = tile.m * tile.multicastB;
    const int used = smaller(larger(count, 0), int(gemm.m));
    return (used + rows - 1) / rows * tile.multicastB;
  }
};
struct ColumnTokens {
  static constexpr bool isLimited = true, areUnread = false;
  int count;
  template <Tile tile>
  __device__ __forceinline__ bool isUnused(const TileStart &at) const {
    return at.n >= count;
  }
};
/// Rows of tiles are walked one after the other: these are left out one by one, as those of zeros.
struct UnreadColumnTokens : ColumnTokens {};
/// The tiles that blocks take, and where one of them begins.
template <GemmProblem gemm, Tile tile, typename Tokens>
__device__ __forceinline__ int countTiles(const Tokens &tokens) {
  using P = TileConfig<gemm, tile>;
  if constexpr (Tokens::areUnread) return tokens.template tilesM<gemm, tile>() * P::tilesN;
  else return P::tiles;
}
template <GemmProblem gemm, Tile tile, typename Tokens>
__device__ __forceinline__ TileStart tileStart(const Tokens &tokens, int index) {
  using P = TileConfig<gemm, tile>;
  if constexpr (Tokens::areUnread) {
    static_assert(gemm.batch == 1);
    const TileOfGroup at =
        groupedTile<P::tilesN, tile.groupM>(index, tokens.template tilesM<gemm, tile>());
    return {0, at.m * tile.m, at.n * tile.n};
  } else {
    return tileStart<gemm, tile>(index);
  }
}
/// Where k are packed tokens: how many there are. Both operands are zero behind the last one, so
/// that every tile ends with the k-tile that has it.
struct SummedTokens {
  static constexpr bool isLimited = false, areUnread = false;
  int count;
  template <Tile tile>
  __device__ __forceinline__ bool isUnused(const TileStart &) const {
    return false;
  }
  /// K-tiles that have tokens, or the first ones, of zeros, where every block of a cluster needs
  /// one.
  template <GemmProblem gemm, Tile tile>
  __device__ __forceinline__ int kTiles() const {
    constexpr int tileK = TileConfig<gemm, tile>::tileK;
    return larger((smaller(larger(count, 0), int(gemm.k)) + tileK - 1) / tileK, tile.splitK);
  }
};
/// The k-tiles of any tile that this block multiplies.
template <GemmProblem gemm, Tile tile, typename Tokens>
__device__ __forceinline__ KTileRange kTilesOfBlock(const Tokens &) {
  return kTilesOfBlock<gemm, tile>();
}
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ KTileRange kTilesOfBlock(const SummedTokens &tokens) {
  const int kTiles = tokens.kTiles<gemm, tile>();
  const int rank = rankInCluster<tile>(), first = rank * kTiles / tile.splitK;
  return {first, (rank + 1) * kTiles / tile.splitK - first};
}
/// Those of one tile: none of an unused one.
template <GemmProblem gemm, Tile tile, typename Tokens>
__device__ __forceinline__ KTileRange kTilesOfTile(const Tokens &tokens, int index) {
  KTileRange kTiles = kTilesOfBlock<gemm, tile>(tokens);
  if constexpr (Tokens::isLimited)
    if (tokens.template isUnused<tile>(tileStart<gemm, tile>(index))) kTiles.count = 0;
  return kTiles;
}

/// Shared memory: stages of k-tiles of A and B, subtiles of C, accumulators of other blocks,
/// barriers.
template <GemmProblem gemm, Tile tile>
struct Shared {
  using P = TileConfig<gemm, tile>;
  SharedAddress start;
  __device__ __forceinline__ SharedAddress a(int stage) const {
    return start + stage * P::stageBytes;
  }
  __device__ __forceinline__ SharedAddress b(int stage) const { return a(stage) + P::bytesA; }
  __device__ __forceinline__ SharedAddress epilogueStages(int consumer) const {
    return start + tile.stages * P::stageBytes + consumer * P::epilogueStagesBytes;
  }
  __device__ __forceinline__ SharedAddress clusterPartials(int consumer) const {
    return start + P::partialsAt + (tile.isPingPong ? 0 : consumer * P::partialsBytes);
  }
  __device__ __forceinline__ SharedAddress full(int stage) const {
    return start + P::barriersAt + 8 * stage;
  }
  __device__ __forceinline__ SharedAddress empty(int stage) const {
    return full(tile.stages) + 8 * stage;
  }
  __device__ __forceinline__ SharedAddress subtileFull(int consumer) const {
    return empty(tile.stages) + 8 * tile.epilogueStages * consumer;
  }
  __device__ __forceinline__ SharedAddress partialsFull(int consumer) const {
    return subtileFull(P::consumers) + 8 * consumer;
  }
  /// The same barrier, where no cluster shares a tile.
  __device__ __forceinline__ SharedAddress subtilesEmpty(int consumer) const {
    return partialsFull(consumer);
  }
};

}  // namespace weft::sm90
