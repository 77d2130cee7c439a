// Contractions on sm_90a one of whose operands is transformed on load (prologue.cuh): the kernel
// template of sm90_gemm.cuh, whose consumers, tiles and epilogue store these are, with another
// first warpgroup.
//
// Where TMA brings both operands, one thread asks for kTiles, and three warps rewrite those of the
// tensor that the operand is transformed of, in place: they wait until such a k-tile has rawFull,
// and tell the consumers that it is there by the barrier that these wait for anyhow, which counts
// the other operand's bytes, too. So k-tiles are in flight while one is transformed and another one
// is multiplied. Else all threads of the warpgroup transform the operand between loads and stores,
// from elements of any width at any address.
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/sm90_load.cuh"
#include "weft/sm90_prologue_entry.cuh"
#include "weft/sm90_prologue_transform.cuh"

namespace weft::sm90 {

/// Signals that a k-tile of the tensor that the operand is transformed of has rawFull.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ SharedAddress rawFull(Shared<gemm, tile> shared, int stage) {
  return shared.start + TileConfig<gemm, tile>::sharedBytes + 8 * stage;
}

/// Has TMA bring all k-tiles of all tiles of this block; one thread.
template <GemmProblem gemm, Tile tile, bool isOfA>
__device__ __forceinline__ void loadKTilesForTransform(Shared<gemm, tile> shared,
                                                       const TensorMap *transformed,
                                                       const TensorMap *other) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  constexpr bool isBatched = gemm.batch > 1;
  PipelineState<tile.stages> state{0, 1};
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<gemm, tile>(index);
    const int outer = isOfA ? at.m : at.n, otherOuter = isOfA ? at.n : at.m;
#pragma unroll 1
    for (int kTile = 0; kTile < P::kTiles; ++kTile) {
      const SharedAddress a = shared.a(state.stage), b = shared.b(state.stage),
                          full = shared.full(state.stage), raw = rawFull(shared, state.stage);
      wait(shared.empty(state.stage), state.parity);
      arriveExpecting(raw, Prologue::transformedBytes);
      loadKTile<Prologue::operand, Prologue::side, isBatched>(isOfA ? a : b, transformed, raw,
                                                              outer, kTile * P::tileK, at.batch);
      arriveExpecting(full, Prologue::otherBytes);
      loadKTile<Prologue::other, Prologue::otherSide, isBatched>(
          isOfA ? b : a, other, full, otherOuter, kTile * P::tileK, at.batch);
      state.advance();
    }
  }
}

/// Makes the operand in place; the warps that do not ask for kTiles.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, bool isOfA, typename Function>
__device__ __forceinline__ void transformKTiles(Shared<gemm, tile> shared,
                                                const Function &transform, unsigned char *memory,
                                                int thread) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  PipelineState<tile.stages> state;
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<gemm, tile>(index);
#pragma unroll 1
    for (int kTile = 0; kTile < P::kTiles; ++kTile) {
      wait(rawFull(shared, state.stage), state.parity);
      transformKTile<Prologue::operand, Prologue::side, int(gemm.k), Prologue::transformThreads, T,
                     Raw>(memory + state.stage * P::stageBytes + (isOfA ? 0 : P::bytesA), transform,
                          at.batch, isOfA ? at.m : at.n, kTile * P::tileK, thread);
      fenceForAsync();
      __syncwarp();
      if (thread % 32 == 0) arrive(shared.full(state.stage));
      state.advance();
    }
  }
}

/// Copies and makes the operand, and has the other one brought, by all threads of the warpgroup.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, bool isOfA, typename Function>
__device__ __forceinline__ void copyAndTransformKTiles(Shared<gemm, tile> shared,
                                                       const Raw *transformed,
                                                       Tensor<const T> other,
                                                       const Function &transform,
                                                       unsigned char *memory) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  const int thread = threadIdx.x % warpgroup;
  PipelineState<tile.stages> state{0, 1};
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<gemm, tile>(index);
    const int outer = isOfA ? at.m : at.n, otherOuter = isOfA ? at.n : at.m;
#pragma unroll 1
    for (int kTile = 0; kTile < P::kTiles; ++kTile) {
      const SharedAddress full = shared.full(state.stage);
      unsigned char *a = memory + state.stage * P::stageBytes, *b = a + P::bytesA;
      wait(shared.empty(state.stage), state.parity);
      if constexpr (Prologue::other.usesTma) {
        if (thread == 0) {
          arriveExpecting(full, Prologue::otherBytes);
          loadKTile<Prologue::other, Prologue::otherSide, (gemm.batch > 1)>(
              isOfA ? shared.b(state.stage) : shared.a(state.stage), other.map, full, otherOuter,
              kTile * P::tileK, at.batch);
        }
      } else {
        copyKTile<Prologue::other, Prologue::otherSide, Prologue::otherExtent, int(gemm.k)>(
            isOfA ? b : a, other.elements + at.batch * Prologue::other.batch, otherOuter,
            kTile * P::tileK, thread);
      }
      copyAndTransformKTile<Prologue::operand, Prologue::side, Prologue::outerExtent, int(gemm.k),
                            T>(isOfA ? a : b, transformed + at.batch * Prologue::operand.batch,
                               transform, at.batch, outer, kTile * P::tileK, thread);
      fenceForAsync();
      arrive(full);
      state.advance();
    }
  }
}

/// The whole kernel, of tensors as its roles read them: the one that an operand is transformed of,
/// and the other operand.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, bool isOfA, typename Function,
          typename Out>
__device__ __forceinline__ void prologueKernel(Tensor<const Raw> transformed, Tensor<const T> other,
                                               Tensor<T> c, const Function &transform,
                                               const Out &epilogueOp) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared<gemm, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    if (Prologue::operand.usesTma) prefetchMap(transformed.map);
    if (Prologue::other.usesTma) prefetchMap(other.map);
    if (gemm.usesTma) prefetchMap(c.map);
    if constexpr (Out::writesSubtile) prefetchMap(epilogueOp.output.tensor.map);
    constexpr int fullArrivals = (Prologue::other.usesTma ? 1 : 0) +
                                 (Prologue::isInPlace ? Prologue::transformWarps : warpgroup);
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.full(stage), fullArrivals);
      initializeBarrier(shared.empty(stage), tile.isPingPong ? 1 : P::consumers);
      if (Prologue::isInPlace) initializeBarrier(rawFull(shared, stage), 1);
    }
    for (int buffer = 0; buffer < P::consumers * tile.epilogueStages; ++buffer)
      initializeBarrier(shared.subtileFull(0) + 8 * buffer, 1);
    publishBarriers();
  }
  ptx::barrier();
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), role = warp / 4;
  if (role == 0) {
    lowerRegisters<Prologue::producerRegisters>();
    if constexpr (!Prologue::isInPlace) {
      copyAndTransformKTiles<T, Raw, gemm, tile, isOfA>(shared, transformed.elements, other,
                                                        transform, memory);
    } else if (warp > 0) {
      transformKTiles<T, Raw, gemm, tile, isOfA>(shared, transform, memory, int(threadIdx.x) - 32);
    } else if (threadIdx.x == 0) {
      loadKTilesForTransform<gemm, tile, isOfA>(shared, transformed.map, other.map);
    }
  } else {
    raiseRegisters<Prologue::consumerRegisters>();
    consume<ElementsOf<T>, gemm, tile>(shared, c, role - 1, epilogueOp);
  }
}

}  // namespace weft::sm90
