// How operands that are transformed on load (sm90_prologue.cuh) are rewritten in shared memory, or
// made between loads and stores.
#pragma once

#include "weft/pack.cuh"
#include "weft/prologue.cuh"
#include "weft/sm90_tiles.cuh"

namespace weft::sm90 {

/// What follows from a GEMM and a tile. isOfA: which operand is transformed.
template <GemmProblem gemm, Tile tile, bool isOfA>
struct PrologueConfig {
  using P = TileConfig<gemm, tile>;
  static constexpr Operand operand = isOfA ? gemm.a : gemm.b, other = isOfA ? gemm.b : gemm.a;
  static constexpr int side = isOfA ? tile.m : tile.n, otherSide = isOfA ? tile.n : tile.m;
  static constexpr int outerExtent = int(isOfA ? gemm.m : gemm.n),
                       otherExtent = int(isOfA ? gemm.n : gemm.m);
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
template <Operand operand>
__device__ __forceinline__ OperandPlace operandPositionInKTile(int row, int column, int batch,
                                                               int outer0, int k0) {
  if constexpr (operand.isAlongK()) return {batch, outer0 + row, k0 + column * operandVector};
  else return {batch, outer0 + row / 64 * 64 + column * operandVector, k0 + row % 64};
}
template <Operand operand, int kExtent, typename T, typename Function>
__device__ __forceinline__ void transformChunk(Packed<unsigned, 4> *to, float (&x)[operandVector],
                                               const Function &transform, const OperandPlace &at,
                                               bool isKWhole) {
  transformOperand<operand.isAlongK(), kExtent>(x, transform, at, isKWhole);
  Packed<unsigned, 4> words;
#pragma unroll
  for (int w = 0; w < 4; ++w)
    words.at[w] = packPair(static_cast<T *>(nullptr), x[2 * w], x[2 * w + 1]);
  *to = words;
}

/// Rewrites a k-tile of elements of type Raw by `threads` threads. A thread keeps its column, so
/// that what runs along it is read once.
template <Operand operand, int rows, int kExtent, int threads, typename T, typename Raw,
          typename Function>
__device__ __forceinline__ void transformKTile(unsigned char *kTile, const Function &transform,
                                               int batch, int outer0, int k0, int thread) {
  constexpr int rowsAPass = threads / 8, passes = (rows + rowsAPass - 1) / rowsAPass, together = 4,
                depth = 64;
  const int column = thread % 8, firstRow = thread / 8;
  const bool isKWhole = kExtent % depth == 0 || k0 + depth <= kExtent;
#pragma unroll 1
  for (int first = 0; first < passes; first += together) {
    Packed<unsigned, 4> words[together];
#pragma unroll
    for (int pass = 0; pass < together; ++pass)
      words[pass] =
          *chunkOf(kTile, smaller(firstRow + (first + pass) * rowsAPass, rows - 1), column);
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int row = firstRow + (first + pass) * rowsAPass;
      if (row < rows) {
        float x[operandVector];
        unpackOperand<Raw>(x, words[pass].at);
        transformChunk<operand, kExtent, T>(
            chunkOf(kTile, row, column), x, transform,
            operandPositionInKTile<operand>(row, column, batch, outer0, k0), isKWhole);
      }
    }
  }
}

/// Copies and makes a k-tile by the threads of a warpgroup, from rows of Raw that start anywhere.
template <Operand operand, int rows, int outerExtent, int kExtent, typename T, typename Raw,
          typename Function>
__device__ __forceinline__ void copyAndTransformKTile(unsigned char *kTile, const Raw *from,
                                                      const Function &transform, int batch,
                                                      int outer0, int k0, int thread) {
  constexpr int passes = rows * 8 / warpgroup, together = 2, depth = 64;
  const bool isKWhole = kExtent % depth == 0 || k0 + depth <= kExtent;
#pragma unroll 1
  for (int first = 0; first < passes; first += together) {
    float x[together][operandVector];
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int item = (first + pass) * warpgroup + thread;
      const OperandPlace at =
          operandPositionInKTile<operand>(item / 8, item % 8, batch, outer0, k0);
      const bool isRow = operand.isAlongK() ? at.outer < outerExtent : at.k < kExtent;
      const int left = operand.isAlongK() ? kExtent - at.k : outerExtent - at.outer;
      loadOperand(x[pass], from + at.outer * operand.outer + at.k * operand.k,
                  !isRow || left < 0 ? 0 : smaller(left, operandVector));
    }
#pragma unroll
    for (int pass = 0; pass < together; ++pass) {
      const int item = (first + pass) * warpgroup + thread, row = item / 8, column = item % 8;
      transformChunk<operand, kExtent, T>(
          chunkOf(kTile, row, column), x[pass], transform,
          operandPositionInKTile<operand>(row, column, batch, outer0, k0), isKWhole);
    }
  }
}

}  // namespace weft::sm90
