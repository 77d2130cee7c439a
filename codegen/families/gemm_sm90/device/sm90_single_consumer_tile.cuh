// Single-consumer tiles (sm90_single_consumer.cuh): what follows from a GEMM and a tile, where a
// tile and the accumulators of a thread lie, how they are stored.
#pragma once

#include "weft/single_consumer_fragment.cuh"
#include "weft/sm90_tiles.cuh"

namespace weft::sm90 {

constexpr int tileK = 64;  // of halves in a k-tile

/// m x n elements of C: one side 32 or 64, the other one 8 to 48 and not longer.
struct SingleConsumerTile {
  int m, n, stages, splitK;
};

/// What follows from a GEMM and a single-consumer tile.
template <GemmProblem gemm, SingleConsumerTile tile>
struct SingleConsumerConfig {
  static constexpr bool isAlongM = tile.m >= tile.n;  // rows of the instruction are rows of C
  static constexpr Operand rowOperand = isAlongM ? gemm.a : gemm.b,
                           columnOperand = isAlongM ? gemm.b : gemm.a;
  static constexpr int rows = isAlongM ? tile.m : tile.n, columns = isAlongM ? tile.n : tile.m;
  static constexpr int threads = warpgroup + 32;
  static constexpr int rowsBytes = rows * rowBytes, columnsBytes = columns * rowBytes,
                       stageBytes = rowsBytes + columnsBytes;
  static constexpr int columnsAt =
      tile.stages * rowsBytes;  // behind the rows of all stages, the last of which are read beyond
  static constexpr int partialsAt = tile.stages * stageBytes, partialTileBytes = rows * columns * 4;
  static constexpr int barriersAt = partialsAt + (tile.splitK - 1) * partialTileBytes;
  static constexpr int sharedBytes = barriersAt + 8 * (2 * tile.stages + 1);
  static constexpr int kTiles = int((gemm.k + tileK - 1) / tileK),
                       mostKTiles = (kTiles + tile.splitK - 1) / tile.splitK;
  static constexpr bool reusesStages = mostKTiles > tile.stages;
  static constexpr int tilesM = int((gemm.m + tile.m - 1) / tile.m),
                       tilesN = int((gemm.n + tile.n - 1) / tile.n);
  static constexpr int accumulators = columns / 2;  // of a thread
  static constexpr int workingThreads = rows * 2;   // of the warpgroup: a warp has 16 rows
};

/// Shared memory: rows of all stages, columns of all stages, accumulators of other blocks,
/// barriers.
template <GemmProblem gemm, SingleConsumerTile tile>
struct SingleConsumerShared {
  using P = SingleConsumerConfig<gemm, tile>;
  SharedAddress start;
  __device__ __forceinline__ SharedAddress rows(int stage) const {
    return start + stage * P::rowsBytes;
  }
  __device__ __forceinline__ SharedAddress columns(int stage) const {
    return start + P::columnsAt + stage * P::columnsBytes;
  }
  /// Four accumulators of a thread; those of all threads lie side by side.
  __device__ __forceinline__ SharedAddress peerPartial(int sender, int group) const {
    return start + P::partialsAt + (sender - 1) * P::partialTileBytes +
           (group * P::workingThreads + threadIdx.x) * 16;
  }
  __device__ __forceinline__ SharedAddress full(int stage) const {
    return start + P::barriersAt + 8 * stage;
  }
  __device__ __forceinline__ SharedAddress empty(int stage) const {
    return full(tile.stages) + 8 * stage;
  }
  __device__ __forceinline__ SharedAddress partialsFull() const { return full(2 * tile.stages); }
};

/// Where a tile lies: its first row and column of the instruction, its first k-tile.
struct SingleConsumerPosition {
  int rank, batch, row, column, firstKTile, kTiles;
};
template <GemmProblem gemm, SingleConsumerTile tile>
__device__ __forceinline__ SingleConsumerPosition singleConsumerPosition() {
  using P = SingleConsumerConfig<gemm, tile>;
  constexpr int perBatch = P::tilesM * P::tilesN;
  const int rank = blockIdx.x % tile.splitK, index = blockIdx.x / tile.splitK,
            inBatch = index % perBatch;
  const int m = inBatch % P::tilesM * tile.m, n = inBatch / P::tilesM * tile.n,
            first = rank * P::kTiles / tile.splitK;
  return {rank,
          index / perBatch,
          P::isAlongM ? m : n,
          P::isAlongM ? n : m,
          first,
          (rank + 1) * P::kTiles / tile.splitK - first};
}

/// Where the accumulators of a thread lie. Who has none to run the epilogue on, those of tiles
/// beyond its rows and blocks that send theirs to the first of the cluster, asks for what lies
/// beside the first element of all, which costs next to nothing.
template <GemmProblem gemm, SingleConsumerTile tile>
__device__ __forceinline__ SingleConsumerFragment<SingleConsumerConfig<gemm, tile>::accumulators>
singleConsumerFragment(const SingleConsumerPosition &at) {
  const int lane = threadIdx.x % 32;
  if (at.rank > 0 || threadIdx.x >= SingleConsumerConfig<gemm, tile>::workingThreads)
    return {0, 0, 0};
  return {at.batch, at.row + int(threadIdx.x) / 32 * 16 + lane / 4, at.column + lane % 4 * 2};
}

/// The epilogue that multiplies all accumulators by a number, and what any other is.
struct Factor {
  float factor;
  template <int accumulators>
  __device__ __forceinline__ Factor operator()(const SingleConsumerFragment<accumulators> &) const {
    return *this;
  }
  template <int accumulators>
  __device__ __forceinline__ void operator()(float (&values)[accumulators]) const {
#pragma unroll
    for (int e = 0; e < accumulators; ++e) values[e] *= factor;
  }
};

/// The arguments of the kernel template. Emitted text names them, as sm90_args.cuh says; it leaves
/// an epilogue out that would multiply by 1.
template <typename C, typename Epilogue = Factor>
struct SingleConsumerArgs {
  const TensorMap *a, *b;
  C *c;
  Epilogue epilogue = {1};  // a function of where the accumulators of a thread lie
};

/// Rounds the elements of a thread and stores those that lie in C.
template <GemmProblem gemm, SingleConsumerTile tile, typename T>
__device__ __forceinline__ void storeSingleConsumer(
    const float (&values)[SingleConsumerConfig<gemm, tile>::accumulators], T *c,
    const SingleConsumerFragment<SingleConsumerConfig<gemm, tile>::accumulators> &at) {
  T *const batchElement = c + at.batch * gemm.batchStrideC;
  if constexpr (SingleConsumerConfig<gemm, tile>::isAlongM)
    storeTileElements<gemm.m, gemm.n, gemm.strideCm, 1, gemm.usesTma>(batchElement, values, at);
  else storeTileElements<gemm.n, gemm.m, 1, gemm.strideCm, false>(batchElement, values, at);
}

}  // namespace weft::sm90
