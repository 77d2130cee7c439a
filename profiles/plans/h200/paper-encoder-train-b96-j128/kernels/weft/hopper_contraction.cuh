// The skeleton of contractions on sm_90a: C = A B for every member of a batch, accumulated in fp32, as one persistent kernel
// of three warpgroups. The first loads slices of A and B into a ring of stages in shared memory, and beside them what an epilogue
// reads, and joins what it sums (hopper_sums.cuh); the other two multiply them (wgmma) and turn their sums into C (epilogue), which leaves through shared memory.
//
//   cooperative  both consumers share a tile, half of its rows each
//   ping-pong    each consumer has its own tile; while one multiplies, the other stores
//
// Where tiles are few, the blocks of a cluster share the slices of one (hopper_join.cuh): one tile a block, and of ping-pong
// consumers the first alone works.
//
// Operands are contiguous along k or along their outer axis (m or n), 8-bit floats along k alone: their products come
// in the same shapes of bytes, so that a slice holds twice as much of k, and are added up with fewer bits
// (wgmma_float8.cuh). An operand whose rows start at multiples of 16 bytes is loaded by the copy engine, which brings
// zeros for what is out of bounds; any other by the threads of the first warpgroup, in the same places of shared
// memory.
#pragma once

#if defined(WEFT_EMULATE)
#include "emulate_hopper_contraction.h"
#else
#include "weft/hopper_join.cuh"
#include "weft/hopper_load.cuh"
#include "weft/hopper_panels.cuh"
#include "weft/hopper_store.cuh"
#include "weft/wgmma.cuh"
#include "weft/wgmma_float8.cuh"

namespace weft::hopper {

/// Products of a step of k: 32 bytes of every row of A and B.
template <typename A, typename B, bool outerA, bool outerB, int sums>
__device__ __forceinline__ void multiplyElements(float (&d)[sums], unsigned long long a, unsigned long long b, bool accumulates) {
  if constexpr (sizeof(A) == 1) multiply(static_cast<A *>(nullptr), static_cast<B *>(nullptr), d, a, b, accumulates);
  else multiply<outerA, outerB>(static_cast<A *>(nullptr), d, a, b, accumulates);
}

/// Hands a stage back to all that load into it.
template <Product product, Tile tile> __device__ __forceinline__ void leaveStage(Shared<product, tile> shared, int stage) {
  if constexpr (tile.sharers == 1) arrive(shared.empty(stage));
  else
#pragma unroll
    for (int rank = 0; rank < tile.sharers; ++rank) arriveInBlock(addressInBlock(shared.empty(stage), rank));
}

/// Multiplies the slices of one tile. A stage is handed back when the products that read it have ended.
template <Product product, Tile tile, typename A, typename B>
__device__ __forceinline__ void multiplyTile(Sums<product, tile> &sums, Shared<product, tile> shared,
                                             RingPlace<tile.stages> &place, int firstRow, bool isSpeaker) {
  using P = Plan<product, tile>;
  constexpr int stepA = product.a.isAlongK() ? 32 : 16 * rowBytes, stepB = product.b.isAlongK() ? 32 : 16 * rowBytes;
  const int slices = slicesOfBlock<product, tile>().count;
  int previous = -1;
#pragma unroll 1
  for (int slice = 0; slice < slices; ++slice) {
    wait(shared.full(place.stage), place.parity);
    const unsigned long long a = describeOperand(shared.a(place.stage) + firstRow * rowBytes, panelBytes);
    const unsigned long long b = describeOperand(shared.b(place.stage), panelBytes);
    fenceProducts();
#pragma unroll
    for (int step = 0; step < rowBytes / 32; ++step) {
#pragma unroll
      for (int block = 0; block < P::rowBlocks; ++block)
        multiplyElements<A, B, !product.a.isAlongK(), !product.b.isAlongK()>(
            sums[block], a + (block * panelBytes + step * stepA >> 4), b + (step * stepB >> 4), slice > 0 || step > 0);
    }
    commitProducts();
    waitForProducts<1>();
    if (previous >= 0 && isSpeaker) leaveStage(shared, previous);
    previous = place.stage;
    place.advance();
  }
}

/// That the sums of a slice's products are added as they are; else SliceFactors (hopper_scaled.cuh).
struct NoScaling {
  static constexpr bool isScaled = false;
  template <Product product, Tile tile> struct OfRows {
    __device__ __forceinline__ OfRows(const NoScaling &, const Panels<product, tile> &) {}
  };
};

/// isServed: a thread of its own brings the panels that an epilogue reads (hopper_panels.cuh).
template <typename Types, Product product, Tile tile, bool isServed = false, typename Finish, typename Scaling = NoScaling>
__device__ __forceinline__ void consume(Shared<product, tile> shared, Tensor<typename Types::C> c, int consumer, const Finish &finish,
                                        const Scaling &scaling = {}) {
  using P = Plan<product, tile>;
  constexpr int bothConsumers = 2 * warpgroup;
  const bool isSpeaker = threadIdx.x % warpgroup == 0;
  const TilesOfConsumer<product, tile> tiles(consumer);
  RingPlace<tile.stages> place;
  Staging<product, tile, Finish::tensors> staging{shared.staging(consumer), shared.panelLoaded(consumer), consumer};
  const Parts<product, tile> parts{shared.parts(consumer), shared.partsLanded(consumer)};
  if constexpr (tile.splits > 1) waitForCluster();
  if (tile.isPingPong && consumer == 1) {
    arriveAt(turnOf, bothConsumers);
    place.skip(P::slices);
  }
  for (int index = tiles.first; index < P::tiles; index += tiles.stride) {
    const Panels<product, tile> panels{tileStart<product, tile>(index), tiles.firstRow};
    if constexpr (Finish::readsPanel && !isServed)
      if (isSpeaker) requestPanels(staging, panels, finish.panel.tensor.map);
    VectorOfTile<product, tile, typename Finish::VectorInput> vector;
    vector.load(finish.vector, panels);
    if (tile.splits > 1 && isSpeaker) expectParts(parts);
    typename Scaling::template OfRows<product, tile> factors(scaling, panels);
    Sums<product, tile> sums;
    if constexpr (tile.isPingPong) synchronize(turnOf + consumer, bothConsumers);
    if constexpr (isServed)
      if (isSpeaker) freePanels(shared.panelsFree(consumer));
    if constexpr (Scaling::isScaled) {
      Scaling::template multiplyTile<typename Types::A, typename Types::B>(sums, shared, place, factors, tiles.firstRow, isSpeaker);
      if (tile.isPingPong && index + nextTile<tile>() < P::tiles) arriveAt(turnOf + (1 - consumer), bothConsumers);
    } else {
      multiplyTile<product, tile, typename Types::A, typename Types::B>(sums, shared, place, tiles.firstRow, isSpeaker);
      if (tile.isPingPong && index + nextTile<tile>() < P::tiles) arriveAt(turnOf + (1 - consumer), bothConsumers);
      waitForProducts<0>();
      if (isSpeaker) leaveStage(shared, (place.stage + tile.stages - 1) % tile.stages);
    }
    if constexpr (tile.isPingPong) place.skip(P::slices);
    if constexpr (tile.splits > 1) joinParts(sums, parts);
    TotalsOfTile<product, tile, typename Finish::SumOutputs> totals;
    storeSums(sums, c, panels, staging, vector, totals, finish);
    if constexpr (Finish::SumOutputs::count > 0)
      leaveSums<areSumsServed<product, tile, typename Finish::SumOutputs>, Finish::readsPanel>(totals, finish.sums, panels, staging, index == tiles.first, tiles.isLast(index));
  }
  if (isSpeaker) waitForStoresToRead<0>();  // shared memory lives as long as the block; the end of the kernel waits for the rest
}

/// The whole kernel of a T, or of Elements<A, B, C>; launched with Plan::threads and Plan::sharedBytes, at most as
/// many blocks as tiles or multiprocessors, or a cluster for every tile.
template <typename T, Product product, Tile tile, typename Scaling, typename PanelInput, typename VectorInput, typename PanelOutput, typename SumOutputs, typename Epilogue>
__device__ __forceinline__ void scaledContraction(Tensor<const typename ElementsOf<T>::A> a, Tensor<const typename ElementsOf<T>::B> b,
                                                  Tensor<typename ElementsOf<T>::C> c, const Scaling &scaling, const PanelInput &panel,
                                                  const VectorInput &vector, const PanelOutput &output, const SumOutputs &sums, const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  static_assert(sizeof(typename ElementsOf<T>::A) == product.operandBytes && sizeof(typename ElementsOf<T>::B) == product.operandBytes);
  static_assert(product.operandBytes == 2 || (product.a.isAlongK() && product.b.isAlongK()), "there are no other products of 8-bit floats");
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared<product, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    if (product.a.isByEngine) prefetchMap(a.map);
    if (product.b.isByEngine) prefetchMap(b.map);
    if (product.isByEngine) prefetchMap(c.map);
    if constexpr (PanelOutput::isWritten) prefetchMap(output.tensor.map);
    constexpr bool isAnyByEngine = product.a.isByEngine || product.b.isByEngine;
    constexpr int fullArrivals = (isAnyByEngine ? 1 : 0) + (P::areAllByEngine ? 0 : warpgroup);
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.full(stage), fullArrivals);
      initializeBarrier(shared.empty(stage), (tile.isPingPong ? 1 : P::consumers) * tile.sharers);
    }
    for (int buffer = 0; buffer < P::consumers * tile.staging; ++buffer)
      initializeBarrier(shared.panelLoaded(0) + 8 * buffer, 1);
    for (int consumer = 0; consumer < P::consumers; ++consumer) initializeBarrier(shared.partsLanded(consumer), 1);
    publishBarriers();
  }
  if constexpr (tile.sharers == 1) ptx::barrier();
  if constexpr (tile.splits > 1 || tile.sharers > 1) arriveAtCluster();
  if constexpr (tile.sharers > 1) waitForCluster();
  const int role = __shfl_sync(~0u, threadIdx.x / warpgroup, 0);
  using Out = Finish<PanelInput, VectorInput, PanelOutput, SumOutputs, Epilogue>;
  constexpr bool areSumsServed = hopper::areSumsServed<product, tile, SumOutputs>;
  constexpr bool isServed = Out::readsPanel && P::areAllByEngine && tile.splits == 1;
  if (role == 0) {
    lowerRegisters<areSumsServed ? producerRegistersBesideSums : P::producerRegisters>();
    if (!P::areAllByEngine || threadIdx.x == 0) produce<product, tile>(shared, a, b, memory);
    if constexpr (isServed)
      if (threadIdx.x == 32) servePanels<Out::tensors>(shared, panel.tensor.map);
    if constexpr (areSumsServed)
      if (threadIdx.x >= 64) serveSums<product, tile>(sums, __shfl_sync(~0u, threadIdx.x / 32, 0) - 2);
    if constexpr (tile.splits > 1) waitForCluster();
  } else {
    raiseRegisters<areSumsServed ? consumerRegistersBesideSums : P::consumerRegisters>();
    consume<ElementsOf<T>, product, tile, isServed>(shared, c, role - 1, Out{panel, vector, output, sums, epilogue}, scaling);
  }
  if constexpr (tile.sharers > 1) {  // others still write here and arrive here
    __syncwarp();
    leaveCluster();
    waitForCluster();
  }
}

}  // namespace weft::hopper
#endif

namespace weft::hopper {

/// The same where no operand is scaled, where nothing is summed, where no second tensor is made, and where no vector is read either.
template <typename T, Product product, Tile tile, typename PanelInput, typename VectorInput, typename PanelOutput, typename SumOutputs, typename Epilogue>
__device__ __forceinline__ void contraction(Tensor<const typename ElementsOf<T>::A> a, Tensor<const typename ElementsOf<T>::B> b,
                                            Tensor<typename ElementsOf<T>::C> c, const PanelInput &panel, const VectorInput &vector,
                                            const PanelOutput &output, const SumOutputs &sums, const Epilogue &epilogue) {
  scaledContraction<T, product, tile>(a, b, c, NoScaling{}, panel, vector, output, sums, epilogue);
}
template <typename T, Product product, Tile tile, typename PanelInput, typename VectorInput, typename PanelOutput, typename Epilogue>
__device__ __forceinline__ void contraction(Tensor<const typename ElementsOf<T>::A> a, Tensor<const typename ElementsOf<T>::B> b,
                                            Tensor<typename ElementsOf<T>::C> c, const PanelInput &panel, const VectorInput &vector,
                                            const PanelOutput &output, const Epilogue &epilogue) {
  contraction<T, product, tile>(a, b, c, panel, vector, output, NoSums{}, epilogue);
}
template <typename T, Product product, Tile tile, typename PanelInput, typename VectorInput, typename Epilogue>
__device__ __forceinline__ void contraction(Tensor<const typename ElementsOf<T>::A> a, Tensor<const typename ElementsOf<T>::B> b,
                                            Tensor<typename ElementsOf<T>::C> c, const PanelInput &panel, const VectorInput &vector,
                                            const Epilogue &epilogue) {
  contraction<T, product, tile>(a, b, c, panel, vector, NoPanelOutput{}, epilogue);
}
template <typename T, Product product, Tile tile, typename PanelInput, typename Epilogue>
__device__ __forceinline__ void contraction(Tensor<const typename ElementsOf<T>::A> a, Tensor<const typename ElementsOf<T>::B> b,
                                            Tensor<typename ElementsOf<T>::C> c, const PanelInput &panel, const Epilogue &epilogue) {
  contraction<T, product, tile>(a, b, c, panel, NoVectorOperand{}, epilogue);
}

}  // namespace weft::hopper
