// Contractions on sm_90a one of whose operands is transformed on load (prologue.cuh): the skeleton of sm90_gemm.cuh, whose consumers, tiles and
// epilogue store these are, with another first warpgroup.
//
// Where TMA brings both operands, one thread asks for kTiles, and three warps rewrite those of the tensor that the operand is transformed
// of, in place: they wait until such a k-tile has rawFull, and tell the consumers that it is there by the barrier that these wait for anyhow, which
// counts the other operand's bytes, too. So k-tiles are in flight while one is transformed and another one is multiplied. Else all threads of the
// warpgroup transform the operand between loads and stores, from elements of any width at any address.
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/prologue.cuh"

#if !defined(WEFT_EMULATE)
#include "weft/sm90_load.cuh"
#endif

namespace weft::sm90 {

/// What follows from a GEMM and a tile. isOfA: which operand is transformed.
template <GemmProblem gemm, Tile tile, bool isOfA> struct PrologueConfig {
  using P = TileConfig<gemm, tile>;
  static constexpr Operand operand = isOfA ? gemm.a : gemm.b, other = isOfA ? gemm.b : gemm.a;
  static constexpr int side = isOfA ? tile.m : tile.n, otherSide = isOfA ? tile.n : tile.m;
  static constexpr int outerExtent = int(isOfA ? gemm.m : gemm.n), otherExtent = int(isOfA ? gemm.n : gemm.m);
  static constexpr int transformedBytes = side * rowBytes, otherBytes = otherSide * rowBytes;
  static constexpr bool isInPlace = operand.usesTma;
  static constexpr int transformWarps = isInPlace ? 3 : 4, transformThreads = 32 * transformWarps;
  static constexpr int sharedBytes = P::sharedBytes + (isInPlace ? 8 * tile.stages : 0);
  static constexpr int consumerRegisters = 200, producerRegisters = 504 - 2 * consumerRegisters;
  static_assert(gemm.operandBytes == 2, "operands of 16 bits are transformed");
  static_assert(tile.splitK == 1, "blocks that share a tile read their operands as they are");
  static_assert(!isInPlace || other.usesTma, "a warpgroup that copies has no threads to spare");
};

/// Where element chunk `column` of a row of a k-tile lies, as boxes of 128 bytes land.
__device__ __forceinline__ Packed<unsigned, 4> *chunkOf(unsigned char *kTile, int row, int column) {
  return reinterpret_cast<Packed<unsigned, 4> *>(kTile + row * rowBytes + (column ^ row % 8) * 16);
}
/// The first element of that chunk; outer0, k0: of the kTile.
template <Operand operand> __device__ __forceinline__ OperandPlace operandPositionInKTile(int row, int column, int batch, int outer0, int k0) {
  if constexpr (operand.isAlongK()) return {batch, outer0 + row, k0 + column * operandVector};
  else return {batch, outer0 + row / 64 * 64 + column * operandVector, k0 + row % 64};
}
template <Operand operand, int kExtent, typename T, typename Function>
__device__ __forceinline__ void transformChunk(Packed<unsigned, 4> *to, float (&x)[operandVector], const Function &transform, const OperandPlace &at,
                                          bool isKWhole) {
  transformOperand<operand.isAlongK(), kExtent>(x, transform, at, isKWhole);
  Packed<unsigned, 4> words;
#pragma unroll
  for (int w = 0; w < 4; ++w) words.at[w] = packPair(static_cast<T *>(nullptr), x[2 * w], x[2 * w + 1]);
  *to = words;
}

/// Rewrites a k-tile of elements of type Raw by `threads` threads. A thread keeps its column, so that what runs along it is read once.
template <Operand operand, int rows, int kExtent, int threads, typename T, typename Raw, typename Function>
__device__ __forceinline__ void transformKTile(unsigned char *kTile, const Function &transform, int batch, int outer0, int k0, int thread) {
  constexpr int rowsAPass = threads / 8, passes = (rows + rowsAPass - 1) / rowsAPass, together = 4, depth = 64;
  const int column = thread % 8, firstRow = thread / 8;
  const bool isKWhole = kExtent % depth == 0 || k0 + depth <= kExtent;
#pragma unroll 1
  for (int first = 0; first < passes; first += together) {
    Packed<unsigned, 4> words[together];
#pragma unroll
    for (int pass = 0; pass < together; ++pass) words[pass] = *chunkOf(kTile, smaller(firstRow + (first + pass) * rowsAPass, rows - 1), column);
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int row = firstRow + (first + pass) * rowsAPass;
      if (row < rows) {
        float x[operandVector];
        unpackOperand<Raw>(x, words[pass].at);
        transformChunk<operand, kExtent, T>(chunkOf(kTile, row, column), x, transform, operandPositionInKTile<operand>(row, column, batch, outer0, k0), isKWhole);
      }
    }
  }
}

/// Copies and makes a k-tile by the threads of a warpgroup, from rows of Raw that start anywhere.
template <Operand operand, int rows, int outerExtent, int kExtent, typename T, typename Raw, typename Function>
__device__ __forceinline__ void copyAndTransformKTile(unsigned char *kTile, const Raw *from, const Function &transform, int batch, int outer0, int k0,
                                                 int thread) {
  constexpr int passes = rows * 8 / warpgroup, together = 2, depth = 64;
  const bool isKWhole = kExtent % depth == 0 || k0 + depth <= kExtent;
#pragma unroll 1
  for (int first = 0; first < passes; first += together) {
    float x[together][operandVector];
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int item = (first + pass) * warpgroup + thread;
      const OperandPlace at = operandPositionInKTile<operand>(item / 8, item % 8, batch, outer0, k0);
      const bool isRow = operand.isAlongK() ? at.outer < outerExtent : at.k < kExtent;
      const int left = operand.isAlongK() ? kExtent - at.k : outerExtent - at.outer;
      loadOperand(x[pass], from + at.outer * operand.outer + at.k * operand.k, !isRow || left < 0 ? 0 : smaller(left, operandVector));
    }
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int item = (first + pass) * warpgroup + thread, row = item / 8, column = item % 8;
      transformChunk<operand, kExtent, T>(chunkOf(kTile, row, column), x[pass], transform, operandPositionInKTile<operand>(row, column, batch, outer0, k0), isKWhole);
    }
  }
}

}  // namespace weft::sm90

#if defined(WEFT_EMULATE)
#include "emulate_sm90_prologue.h"
#else
namespace weft::sm90 {

/// Signals that a k-tile of the tensor that the operand is transformed of has rawFull.
template <GemmProblem gemm, Tile tile> __device__ __forceinline__ SharedAddress rawFull(Shared<gemm, tile> shared, int stage) {
  return shared.start + TileConfig<gemm, tile>::sharedBytes + 8 * stage;
}

/// Has TMA bring all k-tiles of all tiles of this block; one thread.
template <GemmProblem gemm, Tile tile, bool isOfA>
__device__ __forceinline__ void loadKTilesForTransform(Shared<gemm, tile> shared, const TensorMap *transformed, const TensorMap *other) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  constexpr bool isBatched = gemm.batch > 1;
  PipelineState<tile.stages> state{0, 1};
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<gemm, tile>(index);
    const int outer = isOfA ? at.m : at.n, otherOuter = isOfA ? at.n : at.m;
#pragma unroll 1
    for (int kTile = 0; kTile < P::kTiles; ++kTile) {
      const SharedAddress a = shared.a(state.stage), b = shared.b(state.stage), full = shared.full(state.stage), raw = rawFull(shared, state.stage);
      wait(shared.empty(state.stage), state.parity);
      arriveExpecting(raw, Prologue::transformedBytes);
      loadKTile<Prologue::operand, Prologue::side, isBatched>(isOfA ? a : b, transformed, raw, outer, kTile * P::tileK, at.batch);
      arriveExpecting(full, Prologue::otherBytes);
      loadKTile<Prologue::other, Prologue::otherSide, isBatched>(isOfA ? b : a, other, full, otherOuter, kTile * P::tileK, at.batch);
      state.advance();
    }
  }
}

/// Makes the operand in place; the warps that do not ask for kTiles.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, bool isOfA, typename Function>
__device__ __forceinline__ void transformKTiles(Shared<gemm, tile> shared, const Function &transform, unsigned char *memory, int thread) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  PipelineState<tile.stages> state;
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<gemm, tile>(index);
#pragma unroll 1
    for (int kTile = 0; kTile < P::kTiles; ++kTile) {
      wait(rawFull(shared, state.stage), state.parity);
      transformKTile<Prologue::operand, Prologue::side, int(gemm.k), Prologue::transformThreads, T, Raw>(
          memory + state.stage * P::stageBytes + (isOfA ? 0 : P::bytesA), transform, at.batch, isOfA ? at.m : at.n, kTile * P::tileK, thread);
      fenceForAsync();
      __syncwarp();
      if (thread % 32 == 0) arrive(shared.full(state.stage));
      state.advance();
    }
  }
}

/// Copies and makes the operand, and has the other one brought, by all threads of the warpgroup.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, bool isOfA, typename Function>
__device__ __forceinline__ void copyAndTransformKTiles(Shared<gemm, tile> shared, const Raw *transformed, Tensor<const T> other, const Function &transform,
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
          loadKTile<Prologue::other, Prologue::otherSide, (gemm.batch > 1)>(isOfA ? shared.b(state.stage) : shared.a(state.stage), other.map,
                                                                           full, otherOuter, kTile * P::tileK, at.batch);
        }
      } else {
        copyKTile<Prologue::other, Prologue::otherSide, Prologue::otherExtent, int(gemm.k)>(
            isOfA ? b : a, other.elements + at.batch * Prologue::other.batch, otherOuter, kTile * P::tileK, thread);
      }
      copyAndTransformKTile<Prologue::operand, Prologue::side, Prologue::outerExtent, int(gemm.k), T>(
          isOfA ? a : b, transformed + at.batch * Prologue::operand.batch, transform, at.batch, outer, kTile * P::tileK, thread);
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
__device__ __forceinline__ void prologueKernel(Tensor<const Raw> transformed,
                                               Tensor<const T> other, Tensor<T> c,
                                               const Function &transform, const Out &epilogueOp) {
  using P = TileConfig<gemm, tile>;
  using Prologue = PrologueConfig<gemm, tile, isOfA>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared<gemm, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    if (Prologue::operand.usesTma) prefetchMap(transformed.map);
    if (Prologue::other.usesTma) prefetchMap(other.map);
    if (gemm.usesTma) prefetchMap(c.map);
    if constexpr (Out::writesSubtile) prefetchMap(epilogueOp.output.tensor.map);
    constexpr int fullArrivals = (Prologue::other.usesTma ? 1 : 0) + (Prologue::isInPlace ? Prologue::transformWarps : warpgroup);
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.full(stage), fullArrivals);
      initializeBarrier(shared.empty(stage), tile.isPingPong ? 1 : P::consumers);
      if (Prologue::isInPlace) initializeBarrier(rawFull(shared, stage), 1);
    }
    for (int buffer = 0; buffer < P::consumers * tile.epilogueStages; ++buffer) initializeBarrier(shared.subtileFull(0) + 8 * buffer, 1);
    publishBarriers();
  }
  ptx::barrier();
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), role = warp / 4;
  if (role == 0) {
    lowerRegisters<Prologue::producerRegisters>();
    if constexpr (!Prologue::isInPlace) {
      copyAndTransformKTiles<T, Raw, gemm, tile, isOfA>(shared, transformed.elements, other, transform, memory);
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
#endif

namespace weft::sm90 {

/// The whole kernel of operands and a result of T, one operand transformed of elements of type Raw;
/// launched with TileConfig::threads and PrologueConfig::sharedBytes, as many blocks as
/// sm90_gemm.cuh says.
template <typename T, typename Raw, GemmProblem gemm, Tile tile, typename Arguments>
__device__ __forceinline__ void prologueGemm(const Arguments &args) {
  static_assert(Arguments::isTransformedA() != Arguments::isTransformedB() &&
                !Arguments::isScaled() && !Arguments::isStreamK() && !Arguments::reduces());
  const auto epilogueOp = epilogueOpOf<T>(args);
  if constexpr (Arguments::isTransformedA())
    prologueKernel<T, Raw, gemm, tile, true>(tensorOf<const Raw>(args.a),
                                             tensorOf<const T>(args.b), tensorOf<T>(args.c),
                                             args.transformA, epilogueOp);
  else
    prologueKernel<T, Raw, gemm, tile, false>(tensorOf<const Raw>(args.b),
                                              tensorOf<const T>(args.a), tensorOf<T>(args.c),
                                              args.transformB, epilogueOp);
}

}  // namespace weft::sm90
