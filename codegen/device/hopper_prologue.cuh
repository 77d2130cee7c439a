// Contractions on sm_90a one of whose operands is made on load (prologue.cuh): the skeleton of hopper_contraction.cuh, whose consumers, tiles and
// way out these are, with another first warpgroup.
//
// Where the copy engine brings both operands, one thread asks for slices, and three warps rewrite those of the tensor that the operand is made
// of, in place: they wait until such a slice has landed, and tell the consumers that it is there by the barrier that these wait for anyhow, which
// counts the other operand's bytes, too. So slices are on their way while one is made and another one is multiplied. Else all threads of the
// warpgroup make the operand between loads and stores, from elements of any width at any address.
#pragma once

#include "weft/hopper_contraction.cuh"
#include "weft/prologue.cuh"

#if !defined(WEFT_EMULATE)
#include "weft/hopper_load.cuh"
#endif

namespace weft::hopper {

/// What follows from a product and a tile. isOfA: which operand is made.
template <Product product, Tile tile, bool isOfA> struct MakingPlan {
  using P = Plan<product, tile>;
  static constexpr Operand operand = isOfA ? product.a : product.b, other = isOfA ? product.b : product.a;
  static constexpr int side = isOfA ? tile.m : tile.n, otherSide = isOfA ? tile.n : tile.m;
  static constexpr int outerExtent = int(isOfA ? product.m : product.n), otherExtent = int(isOfA ? product.n : product.m);
  static constexpr int madeBytes = side * rowBytes, otherBytes = otherSide * rowBytes;
  static constexpr bool isInPlace = operand.isByEngine;
  static constexpr int makingWarps = isInPlace ? 3 : 4, makingThreads = 32 * makingWarps;
  static constexpr int sharedBytes = P::sharedBytes + (isInPlace ? 8 * tile.stages : 0);
  static constexpr int consumerRegisters = 200, producerRegisters = 504 - 2 * consumerRegisters;
  static_assert(product.operandBytes == 2, "operands of 16 bits are made");
  static_assert(tile.splits == 1, "blocks that share a tile read their operands as they are");
  static_assert(!isInPlace || other.isByEngine, "a warpgroup that copies has no threads to spare");
};

/// Where element chunk `column` of a row of a slice lies, as boxes of 128 bytes land.
__device__ __forceinline__ Packed<unsigned, 4> *chunkOf(unsigned char *slice, int row, int column) {
  return reinterpret_cast<Packed<unsigned, 4> *>(slice + row * rowBytes + (column ^ row % 8) * 16);
}
/// The first element of that chunk; outer0, k0: of the slice.
template <Operand operand> __device__ __forceinline__ OperandPlace placeInSlice(int row, int column, int batch, int outer0, int k0) {
  if constexpr (operand.isAlongK()) return {batch, outer0 + row, k0 + column * operandVector};
  else return {batch, outer0 + row / 64 * 64 + column * operandVector, k0 + row % 64};
}
template <Operand operand, int kExtent, typename T, typename Function>
__device__ __forceinline__ void makeChunk(Packed<unsigned, 4> *to, float (&x)[operandVector], const Function &make, const OperandPlace &at,
                                          bool isKWhole) {
  makeOperand<operand.isAlongK(), kExtent>(x, make, at, isKWhole);
  Packed<unsigned, 4> words;
#pragma unroll
  for (int w = 0; w < 4; ++w) words.at[w] = packPair(static_cast<T *>(nullptr), x[2 * w], x[2 * w + 1]);
  *to = words;
}

/// Rewrites a slice of elements of type Raw by `threads` threads. A thread keeps its column, so that what runs along it is read once.
template <Operand operand, int rows, int kExtent, int threads, typename T, typename Raw, typename Function>
__device__ __forceinline__ void makeSlice(unsigned char *slice, const Function &make, int batch, int outer0, int k0, int thread) {
  constexpr int rowsAPass = threads / 8, passes = (rows + rowsAPass - 1) / rowsAPass, together = 4, depth = 64;
  const int column = thread % 8, firstRow = thread / 8;
  const bool isKWhole = kExtent % depth == 0 || k0 + depth <= kExtent;
#pragma unroll 1
  for (int first = 0; first < passes; first += together) {
    Packed<unsigned, 4> words[together];
#pragma unroll
    for (int pass = 0; pass < together; ++pass) words[pass] = *chunkOf(slice, smaller(firstRow + (first + pass) * rowsAPass, rows - 1), column);
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int row = firstRow + (first + pass) * rowsAPass;
      if (row < rows) {
        float x[operandVector];
        unpackOperand<Raw>(x, words[pass].at);
        makeChunk<operand, kExtent, T>(chunkOf(slice, row, column), x, make, placeInSlice<operand>(row, column, batch, outer0, k0), isKWhole);
      }
    }
  }
}

/// Copies and makes a slice by the threads of a warpgroup, from rows of Raw that start anywhere.
template <Operand operand, int rows, int outerExtent, int kExtent, typename T, typename Raw, typename Function>
__device__ __forceinline__ void copyAndMakeSlice(unsigned char *slice, const Raw *from, const Function &make, int batch, int outer0, int k0,
                                                 int thread) {
  constexpr int passes = rows * 8 / warpgroup, together = 2, depth = 64;
  const bool isKWhole = kExtent % depth == 0 || k0 + depth <= kExtent;
#pragma unroll 1
  for (int first = 0; first < passes; first += together) {
    float x[together][operandVector];
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int item = (first + pass) * warpgroup + thread;
      const OperandPlace at = placeInSlice<operand>(item / 8, item % 8, batch, outer0, k0);
      const bool isRow = operand.isAlongK() ? at.outer < outerExtent : at.k < kExtent;
      const int left = operand.isAlongK() ? kExtent - at.k : outerExtent - at.outer;
      loadOperand(x[pass], from + at.outer * operand.outer + at.k * operand.k, !isRow || left < 0 ? 0 : smaller(left, operandVector));
    }
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int item = (first + pass) * warpgroup + thread, row = item / 8, column = item % 8;
      makeChunk<operand, kExtent, T>(chunkOf(slice, row, column), x[pass], make, placeInSlice<operand>(row, column, batch, outer0, k0), isKWhole);
    }
  }
}

}  // namespace weft::hopper

#if defined(WEFT_EMULATE)
#include "emulate_hopper_prologue.h"
#else
namespace weft::hopper {

/// Signals that a slice of the tensor that the operand is made of has landed.
template <Product product, Tile tile> __device__ __forceinline__ SharedAddress landed(Shared<product, tile> shared, int stage) {
  return shared.start + Plan<product, tile>::sharedBytes + 8 * stage;
}

/// Has the copy engine bring all slices of all tiles of this block; one thread.
template <Product product, Tile tile, bool isOfA>
__device__ __forceinline__ void requestSlices(Shared<product, tile> shared, const TensorMap *made, const TensorMap *other) {
  using P = Plan<product, tile>;
  using Making = MakingPlan<product, tile, isOfA>;
  constexpr bool isBatched = product.batch > 1;
  RingPlace<tile.stages> place{0, 1};
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<product, tile>(index);
    const int outer = isOfA ? at.m : at.n, otherOuter = isOfA ? at.n : at.m;
#pragma unroll 1
    for (int slice = 0; slice < P::slices; ++slice) {
      const SharedAddress a = shared.a(place.stage), b = shared.b(place.stage), full = shared.full(place.stage), raw = landed(shared, place.stage);
      wait(shared.empty(place.stage), place.parity);
      arriveExpecting(raw, Making::madeBytes);
      loadSlice<Making::operand, Making::side, isBatched>(isOfA ? a : b, made, raw, outer, slice * P::tileK, at.batch);
      arriveExpecting(full, Making::otherBytes);
      loadSlice<Making::other, Making::otherSide, isBatched>(isOfA ? b : a, other, full, otherOuter, slice * P::tileK, at.batch);
      place.advance();
    }
  }
}

/// Makes the operand in place; the warps that do not ask for slices.
template <typename T, typename Raw, Product product, Tile tile, bool isOfA, typename Function>
__device__ __forceinline__ void makeSlices(Shared<product, tile> shared, const Function &make, unsigned char *memory, int thread) {
  using P = Plan<product, tile>;
  using Making = MakingPlan<product, tile, isOfA>;
  RingPlace<tile.stages> place;
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<product, tile>(index);
#pragma unroll 1
    for (int slice = 0; slice < P::slices; ++slice) {
      wait(landed(shared, place.stage), place.parity);
      makeSlice<Making::operand, Making::side, int(product.k), Making::makingThreads, T, Raw>(
          memory + place.stage * P::stageBytes + (isOfA ? 0 : P::bytesA), make, at.batch, isOfA ? at.m : at.n, slice * P::tileK, thread);
      fenceForAsync();
      __syncwarp();
      if (thread % 32 == 0) arrive(shared.full(place.stage));
      place.advance();
    }
  }
}

/// Copies and makes the operand, and has the other one brought, by all threads of the warpgroup.
template <typename T, typename Raw, Product product, Tile tile, bool isOfA, typename Function>
__device__ __forceinline__ void copyAndMakeSlices(Shared<product, tile> shared, const Raw *made, Tensor<const T> other, const Function &make,
                                                  unsigned char *memory) {
  using P = Plan<product, tile>;
  using Making = MakingPlan<product, tile, isOfA>;
  const int thread = threadIdx.x % warpgroup;
  RingPlace<tile.stages> place{0, 1};
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<product, tile>(index);
    const int outer = isOfA ? at.m : at.n, otherOuter = isOfA ? at.n : at.m;
#pragma unroll 1
    for (int slice = 0; slice < P::slices; ++slice) {
      const SharedAddress full = shared.full(place.stage);
      unsigned char *a = memory + place.stage * P::stageBytes, *b = a + P::bytesA;
      wait(shared.empty(place.stage), place.parity);
      if constexpr (Making::other.isByEngine) {
        if (thread == 0) {
          arriveExpecting(full, Making::otherBytes);
          loadSlice<Making::other, Making::otherSide, (product.batch > 1)>(isOfA ? shared.b(place.stage) : shared.a(place.stage), other.map,
                                                                           full, otherOuter, slice * P::tileK, at.batch);
        }
      } else {
        copySlice<Making::other, Making::otherSide, Making::otherExtent, int(product.k)>(
            isOfA ? b : a, other.elements + at.batch * Making::other.batch, otherOuter, slice * P::tileK, thread);
      }
      copyAndMakeSlice<Making::operand, Making::side, Making::outerExtent, int(product.k), T>(
          isOfA ? a : b, made + at.batch * Making::operand.batch, make, at.batch, outer, slice * P::tileK, thread);
      fenceForAsync();
      arrive(full);
      place.advance();
    }
  }
}

/// The whole kernel of operands and a result of T, one operand made of elements of type Raw; launched with Plan::threads and
/// MakingPlan::sharedBytes, as many blocks as hopper_contraction.cuh says.
template <typename T, typename Raw, Product product, Tile tile, bool isOfA, typename Function, typename PanelInput, typename VectorInput,
          typename PanelOutput, typename Epilogue>
__device__ __forceinline__ void contractionOfMade(Tensor<const Raw> made, Tensor<const T> other, Tensor<T> c, const Function &make,
                                                  const PanelInput &panel, const VectorInput &vector, const PanelOutput &output,
                                                  const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  using Making = MakingPlan<product, tile, isOfA>;
  extern __shared__ __align__(1024) unsigned char memory[];
  const Shared<product, tile> shared{sharedAddress(memory)};
  if (threadIdx.x == 0) {
    if (Making::operand.isByEngine) prefetchMap(made.map);
    if (Making::other.isByEngine) prefetchMap(other.map);
    if (product.isByEngine) prefetchMap(c.map);
    if constexpr (PanelOutput::isWritten) prefetchMap(output.tensor.map);
    constexpr int fullArrivals = (Making::other.isByEngine ? 1 : 0) + (Making::isInPlace ? Making::makingWarps : warpgroup);
    for (int stage = 0; stage < tile.stages; ++stage) {
      initializeBarrier(shared.full(stage), fullArrivals);
      initializeBarrier(shared.empty(stage), tile.isPingPong ? 1 : P::consumers);
      if (Making::isInPlace) initializeBarrier(landed(shared, stage), 1);
    }
    for (int buffer = 0; buffer < P::consumers * tile.staging; ++buffer) initializeBarrier(shared.panelLoaded(0) + 8 * buffer, 1);
    publishBarriers();
  }
  ptx::barrier();
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), role = warp / 4;
  if (role == 0) {
    lowerRegisters<Making::producerRegisters>();
    if constexpr (!Making::isInPlace) {
      copyAndMakeSlices<T, Raw, product, tile, isOfA>(shared, made.elements, other, make, memory);
    } else if (warp > 0) {
      makeSlices<T, Raw, product, tile, isOfA>(shared, make, memory, int(threadIdx.x) - 32);
    } else if (threadIdx.x == 0) {
      requestSlices<product, tile, isOfA>(shared, made.map, other.map);
    }
  } else {
    raiseRegisters<Making::consumerRegisters>();
    const Finish<PanelInput, VectorInput, PanelOutput, NoSums, Epilogue> finish{panel, vector, output, NoSums{}, epilogue};
    consume<ElementsOf<T>, product, tile>(shared, c, role - 1, finish);
  }
}

}  // namespace weft::hopper
#endif

namespace weft::hopper {

/// The same by the operand that is made.
template <typename T, typename Raw, Product product, Tile tile, typename Function, typename PanelInput, typename VectorInput, typename PanelOutput,
          typename Epilogue>
__device__ __forceinline__ void contractionOfMadeA(Tensor<const Raw> a, Tensor<const T> b, Tensor<T> c, const Function &make, const PanelInput &panel,
                                                   const VectorInput &vector, const PanelOutput &output, const Epilogue &epilogue) {
  contractionOfMade<T, Raw, product, tile, true>(a, b, c, make, panel, vector, output, epilogue);
}
template <typename T, typename Raw, Product product, Tile tile, typename Function, typename PanelInput, typename VectorInput, typename PanelOutput,
          typename Epilogue>
__device__ __forceinline__ void contractionOfMadeB(Tensor<const T> a, Tensor<const Raw> b, Tensor<T> c, const Function &make, const PanelInput &panel,
                                                   const VectorInput &vector, const PanelOutput &output, const Epilogue &epilogue) {
  contractionOfMade<T, Raw, product, tile, false>(b, a, c, make, panel, vector, output, epilogue);
}

}  // namespace weft::hopper
