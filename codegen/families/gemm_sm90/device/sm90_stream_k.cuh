// Tiles that the blocks of a grid share, for the GEMM skeleton (sm90_gemm.cuh): the k-tiles of all
// tiles stand one after another, and every block takes an equal run of them. So no multiprocessor
// waits for a last, thin wave of tiles.
//
// A run ends inside of tiles: of such a tile each block leaves its accumulators in device memory,
// and the one that arrives last adds those of all in the order of the blocks and stores the tile,
// whichever it is. No block waits for another one, and results have the same bits in every launch.
// Both consumers of a block share its tiles; each does so with those of its number.
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/sm90_stream_k_entry.cuh"
#include "weft/sm90_stream_k_partials.cuh"

namespace weft::sm90 {

/// Loads a block's run of k-tiles; one thread.
template <GemmProblem gemm, Tile tile, int blocks, typename A, typename B>
__device__ __forceinline__ void produceStreamK(Shared<gemm, tile> shared, Tensor<const A> a,
                                               Tensor<const B> b) {
  using S = StreamKSchedule<gemm, tile, blocks>;
  PipelineState<tile.stages> state{0, 1};
  const int end = S::first(blockIdx.x + 1);
  for (int at = S::first(blockIdx.x); at < end;) {
    const TileStart start = tileStart<gemm, tile>(at / S::kTiles);
    const int first = at % S::kTiles, count = smaller(S::kTiles - first, end - at);
    loadKTiles<gemm, tile>(shared, state, a, b, nullptr, start, {first, count}, 0);
    at += count;
  }
}

template <typename Types, GemmProblem gemm, Tile tile, int blocks, typename EpilogueOp>
__device__ __forceinline__ void consumeStreamK(Shared<gemm, tile> shared,
                                               Tensor<typename Types::C> c, int consumer,
                                               const EpilogueOp &epilogueOp,
                                               StreamKPartials<gemm, tile, blocks> &partials) {
  using P = TileConfig<gemm, tile>;
  using S = StreamKSchedule<gemm, tile, blocks>;
  const bool isLeader = threadIdx.x % warpgroup == 0;
  const int firstRow = consumer * P::rowBlocks * 64, end = S::first(blockIdx.x + 1);
  PipelineState<tile.stages> state;
  EpilogueStages<gemm, tile, EpilogueOp::tensors> epilogueStages{
      shared.epilogueStages(consumer), shared.subtileFull(consumer), consumer};
  for (int at = S::first(blockIdx.x); at < end;) {
    const int index = at / S::kTiles, count = smaller(S::kTiles - at % S::kTiles, end - at);
    const Subtiles<gemm, tile> subtiles{tileStart<gemm, tile>(index), firstRow};
    at += count;
    Accumulators<gemm, tile> accumulators;
    const int last = multiplyKTiles<typename Types::A, typename Types::B, !gemm.a.isAlongK(),
                                    !gemm.b.isAlongK()>(
        accumulators, StagesOfConsumer<gemm, tile>{shared, firstRow}, state, count, isLeader);
    waitForWgmma<0>();
    if (isLeader) releaseStage(shared, last);
    if (count < S::kTiles &&
        !reduceStreamKPartials(accumulators, partials, index, consumer, shared.partialsFull(0)))
      continue;
    const VectorOfTile<gemm, tile, NoVectorOperand> vector{};
    TileReductions<gemm, tile, NoEpilogueReductions> totals;
    storeEpilogue(accumulators, c, subtiles, epilogueStages, vector, totals, epilogueOp);
  }
  if (isLeader) waitForStoresToRead<0>();
}

/// The whole kernel, of tensors as its roles read them. T: ElementsOf a type.
template <typename T, GemmProblem gemm, Tile tile, int blocks, typename Out>
__device__ __forceinline__ void streamKKernel(Tensor<const typename T::A> a,
                                              Tensor<const typename T::B> b,
                                              Tensor<typename T::C> c,
                                              StreamKPartials<gemm, tile, blocks> &partials,
                                              const Out &epilogueOp) {
  using P = TileConfig<gemm, tile>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared<gemm, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    prefetchMap(a.map);
    prefetchMap(b.map);
    if (gemm.usesTma) prefetchMap(c.map);
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.full(stage), 1);
      initializeBarrier(shared.empty(stage), P::consumers);
    }
    publishBarriers();
  }
  ptx::barrier();
  const int role = __shfl_sync(~0u, threadIdx.x / warpgroup, 0);
  if (role == 0) {
    lowerRegisters<P::producerRegisters>();
    if (threadIdx.x == 0) produceStreamK<gemm, tile, blocks>(shared, a, b);
  } else {
    raiseRegisters<P::consumerRegisters>();
    consumeStreamK<T, gemm, tile, blocks>(shared, c, role - 1, epilogueOp, partials);
  }
}

}  // namespace weft::sm90
