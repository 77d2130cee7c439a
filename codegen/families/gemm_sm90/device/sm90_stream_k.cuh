// Tiles that the blocks of a grid share, for the GEMM kernel template (sm90_gemm.cuh): the k-tiles
// of all tiles stand one after another, and every block takes an equal run of them. So no
// multiprocessor waits for a last, thin wave of tiles.
//
// A run ends inside of tiles: of such a tile each block leaves its accumulators in device memory,
// and the one that arrives last adds those of all in the order of the blocks and stores the tile,
// whichever it is. No block waits for another one, and results have the same bits in every launch.
// Both consumers of a block share its tiles; each does so with those of its number.
//
// Where k are packed tokens, all of this is of the k-tiles that hold any (SummedTokens).
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/sm90_stream_k_entry.cuh"
#include "weft/sm90_stream_k_partials.cuh"

namespace weft::sm90 {

/// Loads a block's run of k-tiles; one thread.
template <GemmProblem gemm, Tile tile, int blocks, typename A, typename B>
__device__ __forceinline__ void produceStreamK(Shared<gemm, tile> shared, Tensor<const A> a,
                                               Tensor<const B> b,
                                               const StreamKSchedule<gemm, tile, blocks> &runs) {
  PipelineState<tile.stages> state{0, 1};
  const int end = runs.first(blockIdx.x + 1);
  for (int at = runs.first(blockIdx.x); at < end;) {
    const TileStart start = tileStart<gemm, tile>(at / runs.kTiles);
    const int first = at % runs.kTiles, count = smaller(runs.kTiles - first, end - at);
    loadKTiles<gemm, tile>(shared, state, a, b, nullptr, start, {first, count}, 0);
    at += count;
  }
}

template <typename Types, GemmProblem gemm, Tile tile, int blocks, typename EpilogueOp>
__device__ __forceinline__ void consumeStreamK(Shared<gemm, tile> shared,
                                               Tensor<typename Types::C> c, int consumer,
                                               const EpilogueOp &epilogueOp,
                                               StreamKPartials<gemm, tile, blocks> &partials,
                                               const StreamKSchedule<gemm, tile, blocks> &runs) {
  using P = TileConfig<gemm, tile>;
  const bool isLeader = threadIdx.x % warpgroup == 0;
  const int firstRow = consumer * P::rowBlocks * 64, end = runs.first(blockIdx.x + 1);
  PipelineState<tile.stages> state;
  EpilogueStages<gemm, tile, EpilogueOp::tensors> epilogueStages{
      shared.epilogueStages(consumer), shared.subtileFull(consumer), consumer};
  for (int at = runs.first(blockIdx.x); at < end;) {
    const int index = at / runs.kTiles, count = smaller(runs.kTiles - at % runs.kTiles, end - at);
    const Subtiles<gemm, tile> subtiles{tileStart<gemm, tile>(index), firstRow};
    at += count;
    Accumulators<gemm, tile> accumulators;
    const int last = multiplyKTiles<typename Types::A, typename Types::B, !gemm.a.isAlongK(),
                                    !gemm.b.isAlongK()>(
        accumulators, StagesOfConsumer<gemm, tile>{shared, firstRow}, state, count, isLeader);
    waitForWgmma<0>();
    if (isLeader) releaseStage(shared, last);
    if (count < runs.kTiles && !reduceStreamKPartials(accumulators, partials, runs, index, consumer,
                                                      shared.partialsFull(0)))
      continue;
    const VectorOfTile<gemm, tile, NoVectorOperand> vector{};
    TileReductions<gemm, tile, NoEpilogueReductions> totals;
    storeEpilogue(accumulators, c, subtiles, epilogueStages, vector, totals, epilogueOp);
  }
  if (isLeader) waitForStoresToRead<0>();
}

/// The whole kernel, of tensors as its roles read them. T: ElementsOf a type.
template <typename T, GemmProblem gemm, Tile tile, int blocks, typename Out, typename Tokens>
__device__ __forceinline__ void streamKKernel(Tensor<const typename T::A> a,
                                              Tensor<const typename T::B> b,
                                              Tensor<typename T::C> c,
                                              StreamKPartials<gemm, tile, blocks> &partials,
                                              const Out &epilogueOp, const Tokens &tokens) {
  using P = TileConfig<gemm, tile>;
  const StreamKSchedule<gemm, tile, blocks> runs(tokens);
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
    if (threadIdx.x == 0) produceStreamK(shared, a, b, runs);
  } else {
    raiseRegisters<P::consumerRegisters>();
    consumeStreamK<T>(shared, c, role - 1, epilogueOp, partials, runs);
  }
}

}  // namespace weft::sm90
