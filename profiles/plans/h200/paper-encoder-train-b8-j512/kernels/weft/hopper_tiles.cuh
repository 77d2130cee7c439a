// The shape of the contraction skeleton (hopper_contraction.cuh): what a product and a tile are, what follows from them, and the
// places in shared memory that its roles hand to each other.
#pragma once

#include "weft/hopper.cuh"
#include "weft/vector.cuh"

namespace weft::hopper {

/// How A or B lies in memory: element strides of its outer axis (m or n), of k and of the batch; one of the first two is 1.
struct Operand {
  Offset outer, k, batch;
  bool isByEngine;  // whether the copy engine loads it: rows start at multiples of 16 bytes
  __host__ __device__ constexpr bool isAlongK() const { return k == 1; }
};

/// C is contiguous along n. isByEngine: the copy engine stores it. operandBytes: of an element of A and B; of one byte they lie along
/// k. isPaired: rows of a C of floats start at multiples of two.
struct Product {
  Offset batch, m, n, k;
  Operand a, b;
  Offset strideCm, batchStrideC;
  bool isByEngine;
  int operandBytes = 2;
  bool isPaired = false;
};

/// tileM: 64, 128 or 256; tileN: 64, 128, 192 or 256. rasterM: tiles along m that are taken together before the next along n,
/// so that what runs at one time shares slices in L2. staging: panels of 64 x 64 elements of C in flight a consumer. splits:
/// blocks of a cluster that share the slices of one tile, and each finishes a part of its panels (hopper_join.cuh). sharers: blocks of
/// a cluster that take neighbouring tiles along m, each of which loads a part of the slices of B for all of them.
struct Tile {
  int m, n, stages, staging, rasterM, splits;
  bool isPingPong;
  int sharers = 1;
};

/// Where a tensor is: the map of it for what the copy engine moves, the address of element zero for what threads do.
template <typename T> struct Tensor {
  const TensorMap *map;
  T *elements;
};

/// Element types of a product: one for A, B and C, or three.
template <typename TypeA, typename TypeB, typename TypeC> struct Elements {
  using A = TypeA;
  using B = TypeB;
  using C = TypeC;
};
template <typename T> struct ElementsOf : Elements<T, T, T> {};
template <typename A, typename B, typename C> struct ElementsOf<Elements<A, B, C>> : Elements<A, B, C> {};

constexpr int rowBytes = 128, panelBytes = 64 * rowBytes, warpgroup = 128;
constexpr int partBytes = 64 * 64 * 4;                                                // of sums of a panel
// Named barriers, one for every consumer: its own threads, whose turn it is to multiply, and who has its sums (hopper_sums.cuh).
constexpr int ownThreads = 1, turnOf = 4, sumsLeft = 6, sumsTaken = 8;

/// What follows from a product and a tile.
template <Product product, Tile tile> struct Plan {
  static constexpr int consumers = 2, threads = (1 + consumers) * warpgroup;
  static constexpr int rowBlocks = tile.m / 64 / (tile.isPingPong ? 1 : consumers);   // of 64 rows, a consumer
  static constexpr int bytesA = tile.m * rowBytes, bytesB = tile.n * rowBytes, stageBytes = bytesA + bytesB;
  static constexpr int stagingBytes = tile.staging * panelBytes;
  static constexpr int panels = rowBlocks * tile.n / 64;                              // of a consumer
  static constexpr int partsBytes = (panels + tile.splits - 1) / tile.splits * (tile.splits - 1) * partBytes;
  static constexpr int partsAt = tile.stages * stageBytes + consumers * stagingBytes;
  static constexpr int barriersAt = partsAt + (tile.isPingPong ? 1 : consumers) * partsBytes;
  static constexpr int sharedBytes = barriersAt + 8 * (2 * tile.stages + consumers * tile.staging + consumers);
  static constexpr int tileK = rowBytes / product.operandBytes;                       // elements of k in a slice
  static constexpr int slices = int((product.k + tileK - 1) / tileK);
  static constexpr int tilesM = int((product.m + tile.m - 1) / tile.m), tilesN = int((product.n + tile.n - 1) / tile.n);
  static constexpr int tiles = int(product.batch) * tilesM * tilesN;
  static constexpr bool areAllByEngine = product.a.isByEngine && product.b.isByEngine;
  static constexpr int sums = rowBlocks * tile.n / 2;                                  // accumulators of a thread
  static constexpr int consumerRegisters = !areAllByEngine ? 200 : sums >= 192 ? 240 : 232;
  static constexpr int producerRegisters = 504 - 2 * consumerRegisters;
};

/// Which block of its cluster this one is, where a cluster works on one tile.
template <Tile tile> __device__ __forceinline__ int rankInCluster() { return tile.splits == 1 ? 0 : blockIdx.x % tile.splits; }
/// The same among blocks that share slices of B.
template <Tile tile> __device__ __forceinline__ int rankAmongSharers() { return tile.sharers == 1 ? 0 : blockIdx.x % tile.sharers; }
/// The tile that this block takes first, and how far it is to its next.
template <Tile tile> __device__ __forceinline__ int firstTile() { return blockIdx.x / tile.splits; }
template <Tile tile> __device__ __forceinline__ int nextTile() { return gridDim.x / tile.splits; }

/// The tiles that a consumer of this block takes, and which of their rows: consumers take tiles in turn, or halves of the same.
template <Product product, Tile tile> struct TilesOfConsumer {
  int first, firstRow;
  static constexpr int tilesAtOnce = tile.isPingPong ? 2 : 1;
  int stride = tilesAtOnce * nextTile<tile>();
  __device__ __forceinline__ explicit TilesOfConsumer(int consumer)
      : first(firstTile<tile>() + (tile.isPingPong ? consumer * nextTile<tile>() : 0)),
        firstRow(tile.isPingPong ? 0 : consumer * Plan<product, tile>::rowBlocks * 64) {}
  /// Or behind the last one.
  __device__ __forceinline__ bool isLast(int index) const { return index + stride >= Plan<product, tile>::tiles; }
};

/// The slices of a tile that this block multiplies, from `first` on.
struct SliceRange {
  int first, count;
};
template <Product product, Tile tile> __device__ __forceinline__ SliceRange slicesOfBlock() {
  constexpr int slices = Plan<product, tile>::slices;
  const int rank = rankInCluster<tile>(), first = rank * slices / tile.splits;
  return {first, (rank + 1) * slices / tile.splits - first};
}

/// The first element of a tile.
struct TileStart {
  int batch, m, n;
};
template <Product product, Tile tile> __device__ __forceinline__ TileStart tileStart(int index) {
  using P = Plan<product, tile>;
  constexpr int perBatch = P::tilesM * P::tilesN, perGroup = tile.rasterM * P::tilesN;
  const int inBatch = index % perBatch, group = inBatch / perGroup, inGroup = inBatch % perGroup;
  constexpr int lastRows = P::tilesM % tile.rasterM;  // of the group that is not whole, if there is one: divisors are constants
  const bool isWhole = lastRows == 0 || group < P::tilesM / tile.rasterM;
  const int row = isWhole ? inGroup % tile.rasterM : inGroup % (lastRows == 0 ? 1 : lastRows);
  const int column = isWhole ? inGroup / tile.rasterM : inGroup / (lastRows == 0 ? 1 : lastRows);
  return {index / perBatch, (group * tile.rasterM + row) * tile.m, column * tile.n};
}

/// A place in the ring of stages; the parity flips with every round.
template <int stages> struct RingPlace {
  int stage = 0, parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  /// By any number of places.
  __device__ __forceinline__ void skip(int places) {
    const int at = stage + places;
    stage = at % stages;
    parity ^= at / stages % 2;
  }
};

/// Shared memory: stages of slices of A and B, panels of C, sums of other blocks, barriers.
template <Product product, Tile tile> struct Shared {
  using P = Plan<product, tile>;
  SharedAddress start;
  __device__ __forceinline__ SharedAddress a(int stage) const { return start + stage * P::stageBytes; }
  __device__ __forceinline__ SharedAddress b(int stage) const { return a(stage) + P::bytesA; }
  __device__ __forceinline__ SharedAddress staging(int consumer) const {
    return start + tile.stages * P::stageBytes + consumer * P::stagingBytes;
  }
  __device__ __forceinline__ SharedAddress parts(int consumer) const {
    return start + P::partsAt + (tile.isPingPong ? 0 : consumer * P::partsBytes);
  }
  __device__ __forceinline__ SharedAddress full(int stage) const { return start + P::barriersAt + 8 * stage; }
  __device__ __forceinline__ SharedAddress empty(int stage) const { return full(tile.stages) + 8 * stage; }
  __device__ __forceinline__ SharedAddress panelLoaded(int consumer) const {
    return empty(tile.stages) + 8 * tile.staging * consumer;
  }
  __device__ __forceinline__ SharedAddress partsLanded(int consumer) const { return panelLoaded(P::consumers) + 8 * consumer; }
  /// The same barrier, where no cluster shares a tile.
  __device__ __forceinline__ SharedAddress panelsFree(int consumer) const { return partsLanded(consumer); }
};

}  // namespace weft::hopper
