// Contractions on sm_90a of few rows or columns, which are weights streamed past them, or of so few tiles that starting and ending
// is most of the time: C = A B for every batch element, accumulated in fp32. One tile a block; one warp loads k-tiles into as
// many stages as shared memory holds, one warpgroup multiplies them (wgmma) and stores its accumulators straight from registers.
// What becomes of them is an epilogue: a function of where a thread's accumulators lie, called before the tile is multiplied, which asks for
// operands and returns a function of the accumulators, called when they are there (single_consumer_fragment.cuh).
//
// The longer side of a tile lies along the 64 rows of the instruction, whichever operand that is, the other one along its columns,
// of which there are as few as 8: so a stage is little more than what is streamed. Of a tile of 32 rows the instruction reads 32
// more, which are whatever lies behind them in shared memory: their accumulators are discarded.
//
// Blocks of a cluster may share k (splitK): all send their accumulators to the first, which adds them in the order of the blocks.
//
// Operands come by TMA, which brings zeros for what is out of bounds.
//
// Kernels of this kind may start while the one before them ends: they let the next one start, and wait for the one before until they
// read or write any tensor. (Asking for what streams to come to L2 meanwhile made them slower, by 2 of 10 us.)
#pragma once

#include "weft/sm90_tiles.cuh"
#include "weft/single_consumer_fragment.cuh"
#if !defined(WEFT_EMULATE)
#include "weft/sm90_load.cuh"
#include "weft/wgmma_small_n.cuh"
#endif

namespace weft::sm90 {

constexpr int tileK = 64;  // of halves in a k-tile

/// m x n elements of C: one side 32 or 64, the other one 8 to 48 and not longer.
struct SingleConsumerTile {
  int m, n, stages, splitK;
};

/// What follows from a GEMM and a single-consumer tile.
template <GemmProblem gemm, SingleConsumerTile tile> struct SingleConsumerConfig {
  static constexpr bool isAlongM = tile.m >= tile.n;  // rows of the instruction are rows of C
  static constexpr Operand rowOperand = isAlongM ? gemm.a : gemm.b, columnOperand = isAlongM ? gemm.b : gemm.a;
  static constexpr int rows = isAlongM ? tile.m : tile.n, columns = isAlongM ? tile.n : tile.m;
  static constexpr int threads = warpgroup + 32;
  static constexpr int rowsBytes = rows * rowBytes, columnsBytes = columns * rowBytes, stageBytes = rowsBytes + columnsBytes;
  static constexpr int columnsAt = tile.stages * rowsBytes;  // behind the rows of all stages, the last of which are read beyond
  static constexpr int partialsAt = tile.stages * stageBytes, partialTileBytes = rows * columns * 4;
  static constexpr int barriersAt = partialsAt + (tile.splitK - 1) * partialTileBytes;
  static constexpr int sharedBytes = barriersAt + 8 * (2 * tile.stages + 1);
  static constexpr int kTiles = int((gemm.k + tileK - 1) / tileK), mostKTiles = (kTiles + tile.splitK - 1) / tile.splitK;
  static constexpr bool reusesStages = mostKTiles > tile.stages;
  static constexpr int tilesM = int((gemm.m + tile.m - 1) / tile.m), tilesN = int((gemm.n + tile.n - 1) / tile.n);
  static constexpr int accumulators = columns / 2;                   // of a thread
  static constexpr int workingThreads = rows * 2;            // of the warpgroup: a warp has 16 rows
};

/// Shared memory: rows of all stages, columns of all stages, accumulators of other blocks, barriers.
template <GemmProblem gemm, SingleConsumerTile tile> struct SingleConsumerShared {
  using P = SingleConsumerConfig<gemm, tile>;
  SharedAddress start;
  __device__ __forceinline__ SharedAddress rows(int stage) const { return start + stage * P::rowsBytes; }
  __device__ __forceinline__ SharedAddress columns(int stage) const { return start + P::columnsAt + stage * P::columnsBytes; }
  /// Four accumulators of a thread; those of all threads lie side by side.
  __device__ __forceinline__ SharedAddress peerPartial(int sender, int group) const {
    return start + P::partialsAt + (sender - 1) * P::partialTileBytes + (group * P::workingThreads + threadIdx.x) * 16;
  }
  __device__ __forceinline__ SharedAddress full(int stage) const { return start + P::barriersAt + 8 * stage; }
  __device__ __forceinline__ SharedAddress empty(int stage) const { return full(tile.stages) + 8 * stage; }
  __device__ __forceinline__ SharedAddress partialsFull() const { return full(2 * tile.stages); }
};

/// Where a tile lies: its first row and column of the instruction, its first k-tile.
struct SingleConsumerPosition {
  int rank, batch, row, column, firstKTile, kTiles;
};
template <GemmProblem gemm, SingleConsumerTile tile> __device__ __forceinline__ SingleConsumerPosition singleConsumerPosition() {
  using P = SingleConsumerConfig<gemm, tile>;
  constexpr int perBatch = P::tilesM * P::tilesN;
  const int rank = blockIdx.x % tile.splitK, index = blockIdx.x / tile.splitK, inBatch = index % perBatch;
  const int m = inBatch % P::tilesM * tile.m, n = inBatch / P::tilesM * tile.n, first = rank * P::kTiles / tile.splitK;
  return {rank, index / perBatch, P::isAlongM ? m : n, P::isAlongM ? n : m, first, (rank + 1) * P::kTiles / tile.splitK - first};
}

/// Where the accumulators of a thread lie. Who has none to run the epilogue on, those of tiles beyond its rows and blocks that send theirs to the first of the
/// cluster, asks for what lies beside the first element of all, which costs next to nothing.
template <GemmProblem gemm, SingleConsumerTile tile>
__device__ __forceinline__ SingleConsumerFragment<SingleConsumerConfig<gemm, tile>::accumulators> singleConsumerFragment(const SingleConsumerPosition &at) {
  const int lane = threadIdx.x % 32;
  if (at.rank > 0 || threadIdx.x >= SingleConsumerConfig<gemm, tile>::workingThreads) return {0, 0, 0};
  return {at.batch, at.row + int(threadIdx.x) / 32 * 16 + lane / 4, at.column + lane % 4 * 2};
}

/// The epilogue that multiplies all accumulators by a number.
struct Factor {
  float factor;
  template <int accumulators> __device__ __forceinline__ Factor operator()(const SingleConsumerFragment<accumulators> &) const { return *this; }
  template <int accumulators> __device__ __forceinline__ void operator()(float (&values)[accumulators]) const {
#pragma unroll
    for (int e = 0; e < accumulators; ++e) values[e] *= factor;
  }
};

/// The arguments of the skeleton. Emitted text names them, as sm90_args.cuh says; it leaves an
/// epilogue out that would multiply by 1.
template <typename C, typename Epilogue = Factor> struct SingleConsumerArgs {
  const TensorMap *a, *b;
  C *c;
  Epilogue epilogue = {1};  // a function of where the accumulators of a thread lie
};

/// Rounds the elements of a thread and stores those that lie in C.
template <GemmProblem gemm, SingleConsumerTile tile, typename T>
__device__ __forceinline__ void storeSingleConsumer(const float (&values)[SingleConsumerConfig<gemm, tile>::accumulators], T *c,
                                            const SingleConsumerFragment<SingleConsumerConfig<gemm, tile>::accumulators> &at) {
  T *const batchElement = c + at.batch * gemm.batchStrideC;
  if constexpr (SingleConsumerConfig<gemm, tile>::isAlongM)
    storeTileElements<gemm.m, gemm.n, gemm.strideCm, 1, gemm.usesTma>(batchElement, values, at);
  else storeTileElements<gemm.n, gemm.m, 1, gemm.strideCm, false>(batchElement, values, at);
}

}  // namespace weft::sm90

#if defined(WEFT_EMULATE)
#include "emulate_sm90_single_consumer.h"
#else
namespace weft::sm90 {

/// Loads the k-tiles of the block; one thread.
template <GemmProblem gemm, SingleConsumerTile tile>
__device__ __forceinline__ void loadSingleConsumer(SingleConsumerShared<gemm, tile> shared, const SingleConsumerPosition &at, const TensorMap *rows,
                                           const TensorMap *columns) {
  using P = SingleConsumerConfig<gemm, tile>;
  constexpr bool isBatched = gemm.batch > 1;
  PipelineState<tile.stages> state{0, 1};
#pragma unroll 1
  for (int kTile = 0; kTile < at.kTiles; ++kTile) {
    const SharedAddress full = shared.full(state.stage);
    const int k = (at.firstKTile + kTile) * tileK;
    if constexpr (P::reusesStages) wait(shared.empty(state.stage), state.parity);
    arriveExpecting(full, P::stageBytes);
    loadKTile<P::rowOperand, P::rows, isBatched>(shared.rows(state.stage), rows, full, at.row, k, at.batch);
    loadKTile<P::columnOperand, P::columns, isBatched>(shared.columns(state.stage), columns, full, at.column, k, at.batch);
    state.advance();
  }
}

/// Multiplies the k-tiles of the block. A stage is handed back when the products that read it have ended.
template <GemmProblem gemm, SingleConsumerTile tile, typename T>
__device__ __forceinline__ void multiplySingleConsumerTile(float (&accumulators)[SingleConsumerConfig<gemm, tile>::accumulators], SingleConsumerShared<gemm, tile> shared,
                                                   const SingleConsumerPosition &at) {
  using P = SingleConsumerConfig<gemm, tile>;
  constexpr bool isOuter = !P::rowOperand.isAlongK();
  constexpr int stepRows = isOuter ? 16 * rowBytes : 32, stepColumns = 32;
  PipelineState<tile.stages> state;
  int previous = -1;
#pragma unroll 1
  for (int kTile = 0; kTile < at.kTiles; ++kTile) {
    wait(shared.full(state.stage), state.parity);
    const unsigned long long rows = describeOperand(shared.rows(state.stage), subtileBytes);
    const unsigned long long columns = describeOperand(shared.columns(state.stage), subtileBytes);
    fenceWgmma();
#pragma unroll
    for (int step = 0; step < tileK / 16; ++step)
      wgmmaSmallN<isOuter>(static_cast<T *>(nullptr), accumulators, rows + (step * stepRows >> 4), columns + (step * stepColumns >> 4),
                              kTile > 0 || step > 0);
    commitWgmma();
    waitForWgmma<1>();
    if (P::reusesStages && previous >= 0 && threadIdx.x == 0) arrive(shared.empty(previous));
    previous = state.stage;
    state.advance();
  }
  waitForWgmma<0>();
}

/// Has the accumulators of all blocks of the cluster added in the first; the others are done then and get false.
template <GemmProblem gemm, SingleConsumerTile tile>
__device__ __forceinline__ bool reduceSingleConsumerPartials(float (&accumulators)[SingleConsumerConfig<gemm, tile>::accumulators], SingleConsumerShared<gemm, tile> shared, int rank) {
  using P = SingleConsumerConfig<gemm, tile>;
  constexpr int groups = P::accumulators / 4;
  if (rank > 0) {
    const SharedAddress barrier = addressInBlock(shared.partialsFull(), 0);
#pragma unroll
    for (int group = 0; group < groups; ++group)
      sendAccumulators(addressInBlock(shared.peerPartial(rank, group), 0), barrier, accumulators[4 * group], accumulators[4 * group + 1], accumulators[4 * group + 2],
               accumulators[4 * group + 3]);
    return false;
  }
  wait(shared.partialsFull(), 0);
#pragma unroll
  for (int sender = 1; sender < tile.splitK; ++sender)
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      float peerPartial[4];
      loadAccumulators(peerPartial, shared.peerPartial(sender, group));
#pragma unroll
      for (int e = 0; e < 4; ++e) accumulators[4 * group + e] += peerPartial[e];
    }
  return true;
}

/// The next kernel may have its blocks start as soon as all of this one have, if it is launched so that it waits by itself.
__device__ __forceinline__ void launchDependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
/// Until the kernels before this one have ended and what they wrote is there; at once where it was not started early.
__device__ __forceinline__ void gridDependencyWait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// The whole kernel; launched with SingleConsumerConfig::threads and
/// SingleConsumerConfig::sharedBytes, a block or a cluster for every tile.
template <typename T, GemmProblem gemm, SingleConsumerTile tile, typename Epilogue>
__device__ __forceinline__ void singleConsumerGemm(const SingleConsumerArgs<T, Epilogue> &args) {
  using P = SingleConsumerConfig<gemm, tile>;
  static_assert(gemm.a.usesTma && gemm.b.usesTma && P::columnOperand.isAlongK());
  extern __shared__ __align__(1024) unsigned char memory[];
  const SingleConsumerShared<gemm, tile> shared{sharedAddress(memory)};
  const TensorMap *const rows = P::isAlongM ? args.a : args.b;
  const TensorMap *const columns = P::isAlongM ? args.b : args.a;
  launchDependents();
  const SingleConsumerPosition at = singleConsumerPosition<gemm, tile>();
  if (threadIdx.x == warpgroup) prefetchMap(rows), prefetchMap(columns);
  if (threadIdx.x < 32) {
    for (int stage = threadIdx.x; stage < tile.stages; stage += 32) {
      initializeBarrier(shared.full(stage), 1);
      if (P::reusesStages) initializeBarrier(shared.empty(stage), 1);
    }
    if (threadIdx.x == 0) initializeBarrier(shared.partialsFull(), 1);
    publishBarriers();
  }
  ptx::barrier();
  if constexpr (tile.splitK > 1) arriveAtCluster();
  gridDependencyWait();
  if (threadIdx.x >= warpgroup) {
    if (threadIdx.x == warpgroup) loadSingleConsumer<gemm, tile>(shared, at, rows, columns);
    if constexpr (tile.splitK > 1) waitForCluster();
    return;
  }
  const SingleConsumerFragment<P::accumulators> own = singleConsumerFragment<gemm, tile>(at);
  const auto epilogueOp = args.epilogue(own);
  if constexpr (tile.splitK > 1) {
    waitForCluster();
    if (at.rank == 0 && threadIdx.x == 0) arriveExpecting(shared.partialsFull(), (tile.splitK - 1) * P::partialTileBytes);
  }
  float accumulators[P::accumulators];
  multiplySingleConsumerTile<gemm, tile, T>(accumulators, shared, at);
  if (threadIdx.x >= P::workingThreads) return;
  if constexpr (tile.splitK > 1)
    if (!reduceSingleConsumerPartials<gemm, tile>(accumulators, shared, at.rank)) return;
  epilogueOp(accumulators);
  storeSingleConsumer<gemm, tile>(accumulators, args.c, own);
}

}  // namespace weft::sm90
#endif
