// Contractions on sm_90a of few rows or columns, which are weights streamed past them, or of so few
// tiles that starting and ending is most of the time: C = A B for every batch element, accumulated
// in fp32. One tile a block; one warp loads k-tiles into as many stages as shared memory holds, one
// warpgroup multiplies them (wgmma) and stores its accumulators straight from registers. What
// becomes of them is an epilogue: a function of where a thread's accumulators lie, called before
// the tile is multiplied, which asks for operands and returns a function of the accumulators,
// called when they are there (single_consumer_fragment.cuh).
//
// The longer side of a tile lies along the 64 rows of the instruction, whichever operand that is,
// the other one along its columns, of which there are as few as 8: so a stage is little more than
// what is streamed. Of a tile of 32 rows the instruction reads 32 more, which are whatever lies
// behind them in shared memory: their accumulators are discarded.
//
// Blocks of a cluster may share k (splitK): all send their accumulators to the first, which adds
// them in the order of the blocks.
//
// Operands come by TMA, which brings zeros for what is out of bounds.
//
// Kernels of this kind may start while the one before them ends: they let the next one start, and
// wait for the one before until they read or write any tensor. (Asking for what streams to come to
// L2 meanwhile made them slower, by 2 of 10 us.)
#pragma once

#include "weft/sm90_cluster.cuh"
#include "weft/sm90_dependent_launch.cuh"
#include "weft/sm90_load.cuh"
#include "weft/sm90_main_loop.cuh"
#include "weft/sm90_single_consumer_tile.cuh"

namespace weft::sm90 {

/// Loads the k-tiles of the block; one thread.
template <GemmProblem gemm, SingleConsumerTile tile>
__device__ __forceinline__ void loadSingleConsumer(SingleConsumerShared<gemm, tile> shared,
                                                   const SingleConsumerPosition &at,
                                                   const TensorMap *rows,
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
    loadKTile<P::rowOperand, P::rows, isBatched>(shared.rows(state.stage), rows, full, at.row, k,
                                                 at.batch);
    loadKTile<P::columnOperand, P::columns, isBatched>(shared.columns(state.stage), columns, full,
                                                       at.column, k, at.batch);
    state.advance();
  }
}

/// The stages as the main loop reads them: what lies along the rows of the instruction is its A.
template <GemmProblem gemm, SingleConsumerTile tile>
struct SingleConsumerStages {
  SingleConsumerShared<gemm, tile> shared;
  __device__ __forceinline__ SharedAddress full(int stage) const { return shared.full(stage); }
  __device__ __forceinline__ SharedAddress a(int stage) const { return shared.rows(stage); }
  __device__ __forceinline__ SharedAddress b(int stage) const { return shared.columns(stage); }
  __device__ __forceinline__ void release(int stage) const {
    if (SingleConsumerConfig<gemm, tile>::reusesStages) arrive(shared.empty(stage));
  }
};

/// Has the accumulators of all blocks of the cluster added in the first; the others are done then
/// and get false.
template <GemmProblem gemm, SingleConsumerTile tile>
__device__ __forceinline__ bool reduceSingleConsumerPartials(
    float (&accumulators)[SingleConsumerConfig<gemm, tile>::accumulators],
    SingleConsumerShared<gemm, tile> shared, int rank) {
  using P = SingleConsumerConfig<gemm, tile>;
  constexpr int groups = P::accumulators / 4;
  if (rank > 0) {
    const SharedAddress barrier = addressInBlock(shared.partialsFull(), 0);
#pragma unroll
    for (int group = 0; group < groups; ++group)
      sendAccumulators(addressInBlock(shared.peerPartial(rank, group), 0), barrier,
                       accumulators[4 * group], accumulators[4 * group + 1],
                       accumulators[4 * group + 2], accumulators[4 * group + 3]);
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
    if (at.rank == 0 && threadIdx.x == 0)
      arriveExpecting(shared.partialsFull(), (tile.splitK - 1) * P::partialTileBytes);
  }
  float accumulators[1][P::accumulators];
  PipelineState<tile.stages> state;
  multiplyKTiles<T, T, !P::rowOperand.isAlongK(), false>(
      accumulators, SingleConsumerStages<gemm, tile>{shared}, state, at.kTiles, threadIdx.x == 0);
  waitForWgmma<0>();
  if (threadIdx.x >= P::workingThreads) return;
  if constexpr (tile.splitK > 1)
    if (!reduceSingleConsumerPartials<gemm, tile>(accumulators[0], shared, at.rank)) return;
  epilogueOp(accumulators[0]);
  storeSingleConsumer<gemm, tile>(accumulators[0], args.c, own);
}

}  // namespace weft::sm90
