// Tiles that the blocks of a grid share, for the contraction skeleton (hopper_contraction.cuh): the slices of k of all tiles stand one
// behind the other, and every block takes an equal run of them. So no multiprocessor waits for a last, thin wave of tiles.
//
// A run ends inside of tiles: of such a tile each block leaves its sums in device memory, and the one that arrives last adds those of all in
// the order of the blocks and stores the tile, whichever it is. No block waits for another one, and results have the same bits in
// every launch. Both consumers of a block share its tiles; each does so with those of its own number.
#pragma once

#include "weft/grid.cuh"
#include "weft/hopper_contraction.cuh"

namespace weft::hopper {

/// The runs of slices, of all blocks together in the order of tiles and of k.
template <Product product, Tile tile, int blockCount> struct Streams {
  using P = Plan<product, tile>;
  static constexpr int blocks = blockCount, slices = P::slices;
  static constexpr Offset total = Offset(P::tiles) * slices;
  static_assert(tile.splits == 1 && !tile.isPingPong, "both consumers share tiles of one block");
  static_assert(P::areAllByEngine && total >= 2 * blocks && total < (Offset(1) << 31));
  /// The first slice of a block's run.
  __device__ __forceinline__ static int first(int block) { return int(block * total / blocks); }
  /// The block whose run has a slice.
  __device__ __forceinline__ static int blockOf(int slice) { return int(((slice + Offset(1)) * blocks - 1) / total); }
  /// Which of its two places a block has for a tile that it shares: its run ends inside of the first one or of the last one.
  __device__ __forceinline__ static int placeOf(int block, int index) { return first(block) / slices == index ? 0 : 1; }
};

/// Device memory of a kernel: the sums that blocks leave, and who has arrived. A module's own, so one launch of it at a time; counters are
/// zero at load and again after every launch.
template <Product product, Tile tile, int blocks> struct alignas(16) StreamPartials {
  using P = Plan<product, tile>;
  static constexpr int quads = P::sums / 4;  // of a thread
  float of[blocks][2][P::consumers][quads][warpgroup][4];
  unsigned arrived[P::tiles][P::consumers];
};

/// Leaves a consumer's sums of a shared tile. True for the consumer that arrives last: then they are those of all slices. `flags`: 16 bytes
/// of shared memory, 8 a consumer. All threads of the consumer take part.
template <Product product, Tile tile, int blocks>
__device__ __forceinline__ bool joinStreams(Sums<product, tile> &sums, StreamPartials<product, tile, blocks> &partials, int index, int consumer,
                                            SharedAddress flags) {
  using S = Streams<product, tile, blocks>;
  using Partials = StreamPartials<product, tile, blocks>;
  constexpr int across = tile.n / 2;
  const int thread = threadIdx.x % warpgroup, begin = S::blockOf(index * S::slices), end = S::blockOf(index * S::slices + S::slices - 1);
  auto &own = partials.of[blockIdx.x][S::placeOf(blockIdx.x, index)][consumer];
#pragma unroll
  for (int quad = 0; quad < Partials::quads; ++quad) {
    Vec<float, 4> four;
#pragma unroll
    for (int e = 0; e < 4; ++e) four.at[e] = sums[(quad * 4 + e) / across][(quad * 4 + e) % across];
    storeVector<4>(own[quad][thread], four);
  }
  synchronize(1 + consumer, warpgroup);
  if (thread == 0) {
    const unsigned last = end - begin;
    storePair(flags + 8 * consumer, ptx::arrive(&partials.arrived[index][consumer], last) == last ? 1.0f : 0.0f, 0.0f);
  }
  synchronize(1 + consumer, warpgroup);
  float isLast[4];
  loadSums(isLast, flags);
  if (isLast[2 * consumer] == 0.0f) return false;
#pragma unroll
  for (int at = 0; at < 4 * Partials::quads; ++at) sums[at / across][at % across] = 0.0f;
#pragma unroll 1
  for (int block = begin; block <= end; ++block) {
    const auto &from = partials.of[block][S::placeOf(block, index)][consumer];
    int place = thread;
#pragma unroll
    for (int quad = 0; quad < Partials::quads; ++quad) {
      if (quad % 8 == 0) place = hide(thread, threadIdx.x % 32);  // all at once would not fit beside the sums
      float four[4];
      ptx::loadFromGrid(four, from[quad][place]);
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[(quad * 4 + e) / across][(quad * 4 + e) % across] += four[e];
    }
  }
  return true;
}

}  // namespace weft::hopper

#if defined(WEFT_EMULATE)
#include "emulate_hopper_streams.h"
#else
namespace weft::hopper {

/// Loads a block's run of slices; one thread.
template <Product product, Tile tile, int blocks, typename A, typename B>
__device__ __forceinline__ void produceStream(Shared<product, tile> shared, Tensor<const A> a, Tensor<const B> b) {
  using P = Plan<product, tile>;
  using S = Streams<product, tile, blocks>;
  constexpr bool isBatched = product.batch > 1;
  RingPlace<tile.stages> place{0, 1};
  const int end = S::first(blockIdx.x + 1);
  for (int at = S::first(blockIdx.x); at < end;) {
    const TileStart start = tileStart<product, tile>(at / S::slices);
    const int first = at % S::slices, count = smaller(S::slices - first, end - at);
#pragma unroll 1
    for (int slice = first; slice < first + count; ++slice) {
      const SharedAddress full = shared.full(place.stage);
      wait(shared.empty(place.stage), place.parity);
      arriveExpecting(full, P::stageBytes);
      loadSlice<product.a, tile.m, isBatched>(shared.a(place.stage), a.map, full, start.m, slice * P::tileK, start.batch);
      loadSlice<product.b, tile.n, isBatched>(shared.b(place.stage), b.map, full, start.n, slice * P::tileK, start.batch);
      place.advance();
    }
    at += count;
  }
}

/// Multiplies so many slices, as multiplyTile does those of a whole tile.
template <Product product, Tile tile, typename A, typename B>
__device__ __forceinline__ void multiplySlices(Sums<product, tile> &sums, Shared<product, tile> shared, RingPlace<tile.stages> &place,
                                               int firstRow, bool isSpeaker, int count) {
  using P = Plan<product, tile>;
  constexpr int stepA = product.a.isAlongK() ? 32 : 16 * rowBytes, stepB = product.b.isAlongK() ? 32 : 16 * rowBytes;
  int previous = -1;
#pragma unroll 1
  for (int slice = 0; slice < count; ++slice) {
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
    if (previous >= 0 && isSpeaker) arrive(shared.empty(previous));
    previous = place.stage;
    place.advance();
  }
  waitForProducts<0>();
  if (isSpeaker) arrive(shared.empty(previous));
}

template <typename Types, Product product, Tile tile, int blocks, typename Finish>
__device__ __forceinline__ void consumeStream(Shared<product, tile> shared, Tensor<typename Types::C> c, int consumer, const Finish &finish,
                                              StreamPartials<product, tile, blocks> &partials) {
  using P = Plan<product, tile>;
  using S = Streams<product, tile, blocks>;
  const bool isSpeaker = threadIdx.x % warpgroup == 0;
  const int firstRow = consumer * P::rowBlocks * 64, end = S::first(blockIdx.x + 1);
  RingPlace<tile.stages> place;
  Staging<product, tile, Finish::tensors> staging{shared.staging(consumer), shared.panelLoaded(consumer), consumer};
  for (int at = S::first(blockIdx.x); at < end;) {
    const int index = at / S::slices, count = smaller(S::slices - at % S::slices, end - at);
    const Panels<product, tile> panels{tileStart<product, tile>(index), firstRow};
    at += count;
    Sums<product, tile> sums;
    multiplySlices<product, tile, typename Types::A, typename Types::B>(sums, shared, place, firstRow, isSpeaker, count);
    if (count < S::slices && !joinStreams(sums, partials, index, consumer, shared.partsLanded(0))) continue;
    const VectorOfTile<product, tile, NoVectorOperand> vector{};
    TotalsOfTile<product, tile, NoSums> totals;
    storeSums(sums, c, panels, staging, vector, totals, finish);
  }
  if (isSpeaker) waitForStoresToRead<0>();
}

/// The whole kernel; launched with Plan::threads, Plan::sharedBytes and so many blocks.
template <typename T, Product product, Tile tile, int blocks, typename Epilogue>
__device__ __forceinline__ void streamedContraction(Tensor<const typename ElementsOf<T>::A> a, Tensor<const typename ElementsOf<T>::B> b,
                                                    Tensor<typename ElementsOf<T>::C> c, StreamPartials<product, tile, blocks> &partials,
                                                    const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared<product, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    prefetchMap(a.map);
    prefetchMap(b.map);
    if (product.isByEngine) prefetchMap(c.map);
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
    if (threadIdx.x == 0) produceStream<product, tile, blocks>(shared, a, b);
  } else {
    raiseRegisters<P::consumerRegisters>();
    using Out = Finish<NoPanelOperand, NoVectorOperand, NoPanelOutput, NoSums, Epilogue>;
    consumeStream<ElementsOf<T>, product, tile, blocks>(shared, c, role - 1, Out{{}, {}, {}, {}, epilogue}, partials);
  }
}

}  // namespace weft::hopper
#endif
