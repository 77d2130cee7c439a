// Tiles that the blocks of a grid share, for the GEMM skeleton (sm90_gemm.cuh): the k-tiles of all tiles stand one after
// another, and every block takes an equal run of them. So no multiprocessor waits for a last, thin wave of tiles.
//
// A run ends inside of tiles: of such a tile each block leaves its accumulators in device memory, and the one that arrives last adds those of all in
// the order of the blocks and stores the tile, whichever it is. No block waits for another one, and results have the same bits in
// every launch. Both consumers of a block share its tiles; each does so with those of its number.
#pragma once

#include "weft/grid.cuh"
#include "weft/sm90_gemm.cuh"

namespace weft::sm90 {

/// The runs of kTiles, of all blocks together in the order of tiles and of k.
template <GemmProblem gemm, Tile tile, int blockCount> struct StreamKSchedule {
  using P = TileConfig<gemm, tile>;
  static constexpr int blocks = blockCount, kTiles = P::kTiles;
  static constexpr Offset total = Offset(P::tiles) * kTiles;
  static_assert(tile.splitK == 1 && !tile.isPingPong, "both consumers share tiles of one block");
  static_assert(P::areAllTma && total >= 2 * blocks && total < (Offset(1) << 31));
  /// The first k-tile of a block's run.
  __device__ __forceinline__ static int first(int block) { return int(block * total / blocks); }
  /// The block whose run has a kTile.
  __device__ __forceinline__ static int blockOf(int kTile) { return int(((kTile + Offset(1)) * blocks - 1) / total); }
  /// Which of its two places a block has for a tile that it shares: its run ends inside of the first one or of the last one.
  __device__ __forceinline__ static int placeOf(int block, int index) { return first(block) / kTiles == index ? 0 : 1; }
};

/// Device memory of a kernel: the accumulators that blocks leave, and who has arrived. A module's own, so one launch of it at a time; counters are
/// zero at load and again after every launch.
template <GemmProblem gemm, Tile tile, int blocks> struct alignas(16) StreamKPartials {
  using P = TileConfig<gemm, tile>;
  static constexpr int quads = P::accumulators / 4;  // of a thread
  float of[blocks][2][P::consumers][quads][warpgroup][4];
  unsigned arrived[P::tiles][P::consumers];
};

/// Leaves a consumer's accumulators of a shared tile. True for the consumer that arrives last: then they are those of all kTiles. `flags`: 16 bytes
/// of shared memory, 8 a consumer. All threads of the consumer take part.
template <GemmProblem gemm, Tile tile, int blocks>
__device__ __forceinline__ bool reduceStreamKPartials(Accumulators<gemm, tile> &accumulators, StreamKPartials<gemm, tile, blocks> &partials, int index, int consumer,
                                            SharedAddress flags) {
  using S = StreamKSchedule<gemm, tile, blocks>;
  using Partials = StreamKPartials<gemm, tile, blocks>;
  constexpr int across = tile.n / 2;
  const int thread = threadIdx.x % warpgroup, begin = S::blockOf(index * S::kTiles), end = S::blockOf(index * S::kTiles + S::kTiles - 1);
  auto &own = partials.of[blockIdx.x][S::placeOf(blockIdx.x, index)][consumer];
#pragma unroll
  for (int quad = 0; quad < Partials::quads; ++quad) {
    Vec<float, 4> four;
#pragma unroll
    for (int e = 0; e < 4; ++e) four.at[e] = accumulators[(quad * 4 + e) / across][(quad * 4 + e) % across];
    storeVector<4>(own[quad][thread], four);
  }
  synchronize(1 + consumer, warpgroup);
  if (thread == 0) {
    const unsigned last = end - begin;
    storePair(flags + 8 * consumer, ptx::arrive(&partials.arrived[index][consumer], last) == last ? 1.0f : 0.0f, 0.0f);
  }
  synchronize(1 + consumer, warpgroup);
  float isLast[4];
  loadAccumulators(isLast, flags);
  if (isLast[2 * consumer] == 0.0f) return false;
#pragma unroll
  for (int at = 0; at < 4 * Partials::quads; ++at) accumulators[at / across][at % across] = 0.0f;
#pragma unroll 1
  for (int block = begin; block <= end; ++block) {
    const auto &from = partials.of[block][S::placeOf(block, index)][consumer];
    int place = thread;
#pragma unroll
    for (int quad = 0; quad < Partials::quads; ++quad) {
      if (quad % 8 == 0) place = hide(thread, threadIdx.x % 32);  // all at once would not fit beside the accumulators
      float four[4];
      ptx::loadFromGrid(four, from[quad][place]);
#pragma unroll
      for (int e = 0; e < 4; ++e) accumulators[(quad * 4 + e) / across][(quad * 4 + e) % across] += four[e];
    }
  }
  return true;
}

}  // namespace weft::sm90

#if defined(WEFT_EMULATE)
#include "emulate_sm90_stream_k.h"
#else
namespace weft::sm90 {

/// Loads a block's run of k-tiles; one thread.
template <GemmProblem gemm, Tile tile, int blocks, typename A, typename B>
__device__ __forceinline__ void produceStreamK(Shared<gemm, tile> shared, Tensor<const A> a, Tensor<const B> b) {
  using P = TileConfig<gemm, tile>;
  using S = StreamKSchedule<gemm, tile, blocks>;
  constexpr bool isBatched = gemm.batch > 1;
  PipelineState<tile.stages> state{0, 1};
  const int end = S::first(blockIdx.x + 1);
  for (int at = S::first(blockIdx.x); at < end;) {
    const TileStart start = tileStart<gemm, tile>(at / S::kTiles);
    const int first = at % S::kTiles, count = smaller(S::kTiles - first, end - at);
#pragma unroll 1
    for (int kTile = first; kTile < first + count; ++kTile) {
      const SharedAddress full = shared.full(state.stage);
      wait(shared.empty(state.stage), state.parity);
      arriveExpecting(full, P::stageBytes);
      loadKTile<gemm.a, tile.m, isBatched>(shared.a(state.stage), a.map, full, start.m, kTile * P::tileK, start.batch);
      loadKTile<gemm.b, tile.n, isBatched>(shared.b(state.stage), b.map, full, start.n, kTile * P::tileK, start.batch);
      state.advance();
    }
    at += count;
  }
}

/// Multiplies so many kTiles, as multiplyTile does those of a whole tile.
template <GemmProblem gemm, Tile tile, typename A, typename B>
__device__ __forceinline__ void multiplyKTiles(Accumulators<gemm, tile> &accumulators, Shared<gemm, tile> shared, PipelineState<tile.stages> &state,
                                               int firstRow, bool isLeader, int count) {
  using P = TileConfig<gemm, tile>;
  constexpr int stepA = gemm.a.isAlongK() ? 32 : 16 * rowBytes, stepB = gemm.b.isAlongK() ? 32 : 16 * rowBytes;
  int previous = -1;
#pragma unroll 1
  for (int kTile = 0; kTile < count; ++kTile) {
    wait(shared.full(state.stage), state.parity);
    const unsigned long long a = describeOperand(shared.a(state.stage) + firstRow * rowBytes, subtileBytes);
    const unsigned long long b = describeOperand(shared.b(state.stage), subtileBytes);
    fenceWgmma();
#pragma unroll
    for (int step = 0; step < rowBytes / 32; ++step) {
#pragma unroll
      for (int block = 0; block < P::rowBlocks; ++block)
        multiplyElements<A, B, !gemm.a.isAlongK(), !gemm.b.isAlongK()>(
            accumulators[block], a + (block * subtileBytes + step * stepA >> 4), b + (step * stepB >> 4), kTile > 0 || step > 0);
    }
    commitWgmma();
    waitForWgmma<1>();
    if (previous >= 0 && isLeader) arrive(shared.empty(previous));
    previous = state.stage;
    state.advance();
  }
  waitForWgmma<0>();
  if (isLeader) arrive(shared.empty(previous));
}

template <typename Types, GemmProblem gemm, Tile tile, int blocks, typename EpilogueOp>
__device__ __forceinline__ void consumeStreamK(Shared<gemm, tile> shared, Tensor<typename Types::C> c, int consumer, const EpilogueOp &epilogueOp,
                                              StreamKPartials<gemm, tile, blocks> &partials) {
  using P = TileConfig<gemm, tile>;
  using S = StreamKSchedule<gemm, tile, blocks>;
  const bool isLeader = threadIdx.x % warpgroup == 0;
  const int firstRow = consumer * P::rowBlocks * 64, end = S::first(blockIdx.x + 1);
  PipelineState<tile.stages> state;
  EpilogueStages<gemm, tile, EpilogueOp::tensors> epilogueStages{shared.epilogueStages(consumer), shared.subtileFull(consumer), consumer};
  for (int at = S::first(blockIdx.x); at < end;) {
    const int index = at / S::kTiles, count = smaller(S::kTiles - at % S::kTiles, end - at);
    const Subtiles<gemm, tile> subtiles{tileStart<gemm, tile>(index), firstRow};
    at += count;
    Accumulators<gemm, tile> accumulators;
    multiplyKTiles<gemm, tile, typename Types::A, typename Types::B>(accumulators, shared, state, firstRow, isLeader, count);
    if (count < S::kTiles && !reduceStreamKPartials(accumulators, partials, index, consumer, shared.partialsFull(0))) continue;
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
#endif

namespace weft::sm90 {

/// The whole kernel; launched with TileConfig::threads, TileConfig::sharedBytes and so many blocks.
template <typename T, GemmProblem gemm, Tile tile, int blocks, typename Arguments>
__device__ __forceinline__ void streamKGemm(const Arguments &args) {
  using E = ElementsOf<T>;
  static_assert(!Arguments::isTransformedA() && !Arguments::isTransformedB() &&
                !Arguments::isScaled() && Arguments::isEpilogueAlone());
  streamKKernel<E, gemm, tile, blocks>(
      tensorOf<const typename E::A>(args.a), tensorOf<const typename E::B>(args.b),
      tensorOf<typename E::C>(args.c), *args.partials, epilogueOpOf<typename E::C>(args));
}

}  // namespace weft::sm90
