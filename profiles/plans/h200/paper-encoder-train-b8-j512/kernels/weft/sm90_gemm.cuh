// The kernel template of contractions on sm_90a: C = A B for every batch element, accumulated in
// fp32, as one persistent kernel of three warpgroups. The first loads k-tiles of A and B into a
// circular buffer of stages in shared memory, and beside them what an epilogue reads, and reduces
// what the epilogue adds up (sm90_epilogue_reduction.cuh); the other two multiply them (wgmma) and
// turn their accumulators into C (epilogue), which leaves through shared memory.
//
//   cooperative  both consumers share a tile, half of its rows each
//   ping-pong    each consumer has its own tile; while one multiplies, the other stores
//
// Where tiles are few, the blocks of a cluster share the k-tiles of one (sm90_split_k.cuh): one
// tile a block, and of ping-pong consumers the first alone works.
//
// Operands are contiguous along k or along their outer axis (m or n), 8-bit floats along k alone:
// their products come in the same shapes of bytes, so that a k-tile holds twice as much of k, and
// are added up with fewer bits (wgmma_e4m3_e4m3.cuh and its siblings). An operand whose rows start
// at multiples of 16 bytes is loaded by TMA, which brings zeros for what is out of bounds; any
// other by the threads of the first warpgroup, in the same places of shared memory.
#pragma once

#include "weft/sm90_epilogue_load.cuh"
#include "weft/sm90_gemm_entry.cuh"
#include "weft/sm90_load.cuh"
#include "weft/sm90_main_loop.cuh"
#include "weft/sm90_registers.cuh"
#include "weft/sm90_split_k.cuh"

namespace weft::sm90 {

/// Hands a stage back to all that load into it.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ void releaseStage(Shared<gemm, tile> shared, int stage) {
  if constexpr (tile.multicastB == 1) arrive(shared.empty(stage));
  else
#pragma unroll
    for (int rank = 0; rank < tile.multicastB; ++rank)
      arriveInBlock(addressInBlock(shared.empty(stage), rank));
}

/// The stages as one of the consumers reads them, from its first row on.
template <GemmProblem gemm, Tile tile>
struct StagesOfConsumer {
  Shared<gemm, tile> shared;
  int firstRow;
  __device__ __forceinline__ SharedAddress full(int stage) const { return shared.full(stage); }
  __device__ __forceinline__ SharedAddress a(int stage) const {
    return shared.a(stage) + firstRow * rowBytes;
  }
  __device__ __forceinline__ SharedAddress b(int stage) const { return shared.b(stage); }
  __device__ __forceinline__ void release(int stage) const { releaseStage(shared, stage); }
};

/// hasEpilogueProducer: a separate thread brings the subtiles that an epilogue reads
/// (sm90_epilogue_load.cuh).
template <typename Types, GemmProblem gemm, Tile tile, bool hasEpilogueProducer = false,
          typename EpilogueOp, typename Scaling = NoScaling, typename Tokens = AllTokens>
__device__ __forceinline__ void consume(Shared<gemm, tile> shared, Tensor<typename Types::C> c,
                                        int consumer, const EpilogueOp &epilogueOp,
                                        const Scaling &scaling = {}, const Tokens &tokens = {}) {
  static_assert(!Scaling::isScaled || (!Tokens::isLimited && !__is_base_of(SummedTokens, Tokens)));
  using P = TileConfig<gemm, tile>;
  constexpr int bothConsumers = 2 * warpgroup;
  const bool isLeader = threadIdx.x % warpgroup == 0;
  const TilesOfConsumer<gemm, tile> tiles(consumer);
  PipelineState<tile.stages> state;
  EpilogueStages<gemm, tile, EpilogueOp::tensors> epilogueStages{
      shared.epilogueStages(consumer), shared.subtileFull(consumer), consumer};
  const ClusterPartials<gemm, tile> clusterPartials{shared.clusterPartials(consumer),
                                                    shared.partialsFull(consumer)};
  if constexpr (tile.splitK > 1) waitForCluster();
  if (tile.isPingPong && consumer == 1) {
    arriveAt(orderBarrier, bothConsumers);
    state.skip(kTilesOfTile<gemm, tile>(tokens, firstTile<tile>()).count);
  }
  const int count = countTiles<gemm, tile>(tokens);
  for (int index = tiles.first; index < count; index += tiles.stride) {
    const TileStart at = tileStart<gemm, tile>(tokens, index);
    const Subtiles<gemm, tile> subtiles{at, tiles.firstRow, tokens.template isUnused<tile>(at)};
    if constexpr (EpilogueOp::readsSubtile && !hasEpilogueProducer)
      if (isLeader) loadFirstSubtiles(epilogueStages, subtiles, epilogueOp.subtile.tensor.map);
    VectorOfTile<gemm, tile, typename EpilogueOp::VectorInput> vector;
    vector.load(epilogueOp.vector, subtiles);
    if (tile.splitK > 1 && isLeader) expectPartials(clusterPartials);
    typename Scaling::template OfRows<gemm, tile> factors(scaling, subtiles);
    Accumulators<gemm, tile> accumulators;
    if constexpr (tile.isPingPong) synchronize(orderBarrier + consumer, bothConsumers);
    if constexpr (hasEpilogueProducer)
      if (isLeader) releaseSubtiles(shared.subtilesEmpty(consumer));
    if constexpr (Scaling::isScaled) {
      multiplyScaledTile<typename Types::A, typename Types::B>(accumulators, shared, state, factors,
                                                               tiles.firstRow, isLeader);
      if (tile.isPingPong && index + nextTile<tile>() < count)
        arriveAt(orderBarrier + (1 - consumer), bothConsumers);
    } else {
      const auto arriveAtNext = [&] {
        if (tile.isPingPong && index + nextTile<tile>() < count)
          arriveAt(orderBarrier + (1 - consumer), bothConsumers);
      };
      if (Tokens::isLimited && subtiles.isUnused) {
        arriveAtNext();  // accumulators stay what they are: zeros would take registers (a spill)
      } else {
        multiplyKTiles<typename Types::A, typename Types::B, !gemm.a.isAlongK(),
                       !gemm.b.isAlongK()>(
            accumulators, StagesOfConsumer<gemm, tile>{shared, tiles.firstRow}, state,
            kTilesOfBlock<gemm, tile>(tokens).count, isLeader);
        arriveAtNext();
        waitForWgmma<0>();
        if (isLeader) releaseStage(shared, (state.stage + tile.stages - 1) % tile.stages);
      }
    }
    if constexpr (tile.isPingPong)
      state.skip(kTilesOfTile<gemm, tile>(tokens, index + nextTile<tile>()).count);
    if constexpr (tile.splitK > 1) reducePartials(accumulators, clusterPartials);
    TileReductions<gemm, tile, typename EpilogueOp::EpilogueReductions> totals;
    storeEpilogue(accumulators, c, subtiles, epilogueStages, vector, totals, epilogueOp);
    if constexpr (EpilogueOp::EpilogueReductions::count > 0)
      storeTileReductions<reducesInProducer<gemm, tile, typename EpilogueOp::EpilogueReductions>,
                          EpilogueOp::readsSubtile>(totals, epilogueOp.reductions, subtiles,
                                                    epilogueStages, index == tiles.first,
                                                    tiles.isLast(index));
  }
  if (isLeader)
    waitForStoresToRead<0>();  // shared memory lives as long as the block; the end of the kernel
                               // waits for the rest
}

/// The whole kernel, of tensors as its roles read them. T: ElementsOf a type.
template <typename T, GemmProblem gemm, Tile tile, typename Scaling, typename Out, typename Tokens>
__device__ __forceinline__ void gemmKernel(Tensor<const typename T::A> a,
                                           Tensor<const typename T::B> b, Tensor<typename T::C> c,
                                           const Scaling &scaling, const Out &epilogueOp,
                                           const Tokens &tokens) {
  using P = TileConfig<gemm, tile>;
  static_assert(sizeof(typename T::A) == gemm.operandBytes);
  static_assert(sizeof(typename T::B) == gemm.operandBytes);
  static_assert(gemm.operandBytes == 2 || (gemm.a.isAlongK() && gemm.b.isAlongK()),
                "there are no other products of 8-bit floats");
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared<gemm, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    if (gemm.a.usesTma) prefetchMap(a.map);
    if (gemm.b.usesTma) prefetchMap(b.map);
    if (gemm.usesTma) prefetchMap(c.map);
    if constexpr (Out::writesSubtile) prefetchMap(epilogueOp.output.tensor.map);
    constexpr bool isAnyTma = gemm.a.usesTma || gemm.b.usesTma;
    constexpr int fullArrivals = (isAnyTma ? 1 : 0) + (P::areAllTma ? 0 : warpgroup);
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.full(stage), fullArrivals);
      initializeBarrier(shared.empty(stage),
                        (tile.isPingPong ? 1 : P::consumers) * tile.multicastB);
    }
    for (int buffer = 0; buffer < P::consumers * tile.epilogueStages; ++buffer)
      initializeBarrier(shared.subtileFull(0) + 8 * buffer, 1);
    for (int consumer = 0; consumer < P::consumers; ++consumer)
      initializeBarrier(shared.partialsFull(consumer), 1);
    publishBarriers();
  }
  if constexpr (tile.multicastB == 1) ptx::barrier();
  if constexpr (tile.splitK > 1 || tile.multicastB > 1) arriveAtCluster();
  if constexpr (tile.multicastB > 1) waitForCluster();
  const int role = __shfl_sync(~0u, threadIdx.x / warpgroup, 0);
  constexpr bool reducesInProducer =
      sm90::reducesInProducer<gemm, tile, typename Out::EpilogueReductions>;
  constexpr bool hasEpilogueProducer = Out::readsSubtile && P::areAllTma && tile.splitK == 1;
  if (role == 0) {
    lowerRegisters<reducesInProducer ? producerRegistersBesideReductions : P::producerRegisters>();
    if (!P::areAllTma || threadIdx.x == 0) produce<gemm, tile>(shared, a, b, memory, tokens);
    if constexpr (hasEpilogueProducer)
      if (threadIdx.x == 32)
        produceSubtiles<Out::tensors>(shared, epilogueOp.subtile.tensor.map, tokens);
    if constexpr (reducesInProducer)
      if (threadIdx.x >= 64)
        produceStripReductions<gemm, tile>(epilogueOp.reductions,
                                           __shfl_sync(~0u, threadIdx.x / 32, 0) - 2);
    if constexpr (tile.splitK > 1) waitForCluster();
  } else {
    raiseRegisters<reducesInProducer ? consumerRegistersBesideReductions : P::consumerRegisters>();
    consume<T, gemm, tile, hasEpilogueProducer>(shared, c, role - 1, epilogueOp, scaling, tokens);
  }
  if constexpr (tile.multicastB > 1) {  // others still write here and arrive here
    __syncwarp();
    leaveCluster();
    waitForCluster();
  }
}

}  // namespace weft::sm90
