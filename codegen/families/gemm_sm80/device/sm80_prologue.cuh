// Contractions from sm_80 on one of whose operands is transformed on load (prologue.cuh): the
// kernel template of sm80_gemm.cuh, whose tiles, circular buffer of stages and fragments these are.
//
// Slices of the tensor that the operand is transformed of come by asynchronous copies where its
// elements are of 16 bits and its rows start at multiples of 16 bytes. Each thread then rewrites
// the chunks that it copied itself, behind its wait and before the block's barrier. Any others it
// makes in registers, between loads and stores.
#pragma once

#include "weft/prologue.cuh"
#include "weft/sm80_gemm.cuh"

namespace weft::sm80 {

/// The part of every k-tile of one operand that one thread copies and makes. Neighbouring threads
/// follow the rows.
template <Operand operand, int side, Offset outerExtent, Offset kExtent, int depth, int threads,
          typename T, typename Transformed>
class TransformedKTile {
  using S = KTileLayout<operand, side, depth>;
  using Raw = typename Transformed::Element;
  static constexpr int rowsAPass = threads / S::chunks, passes = S::rows / rowsAPass,
                       together = passes < 4 ? passes : 4;
  static constexpr Offset pitch = operand.isAlongK() ? operand.outer : operand.k;
  static constexpr bool isOuterWhole = outerExtent % side == 0, isKWhole = kExtent % depth == 0;
  static constexpr bool isInPlace = operand.isAligned && sizeof(Raw) == elementBytes;
  static_assert(rowsAPass % 8 == 0 && S::rows % rowsAPass == 0 && passes % together == 0,
                "passes are whole, and places of neighbouring passes alike");

public:
  __device__ __forceinline__ TransformedKTile(const Transformed &transformed, Offset start,
                                              int batch, int outer0)
      : transformed(transformed),
        row(threadIdx.x / S::chunks),
        column(threadIdx.x % S::chunks * chunk),
        batch(batch),
        outer0(outer0),
        from(transformed.elements + start +
             (operand.isAlongK() ? (outer0 + row) * operand.outer + column
                                 : row * operand.k + outer0 + column)) {}

  /// Starts to copy the next kTile, whose first of k is k0, or makes it.
  __device__ __forceinline__ void copyNext(SharedAddress kTile, int k0) {
    if constexpr (isInPlace) {
#pragma unroll
      for (int pass = 0; pass < passes; ++pass)
        copyAsync(placeOfPass(kTile, pass), from + pass * (rowsAPass * pitch),
                  elementBytes * inBounds(pass, k0));
    } else {
      float x[together][chunk];
#pragma unroll 1
      for (int first = 0; first < passes; first += together) {
#pragma unroll
        for (int pass = 0; pass < together; ++pass)
          loadOperand(x[pass], from + (first + pass) * (rowsAPass * pitch),
                      inBounds(first + pass, k0));
#pragma unroll
        for (int pass = 0; pass < together; ++pass)
          transformAndStore(x[pass], kTile, first + pass, k0);
      }
    }
    from += depth * operand.k;
  }

  /// Makes the operand of a k-tile that has landed.
  __device__ __forceinline__ void transformLanded(SharedAddress kTile, int k0) const {
    if constexpr (isInPlace) {
#pragma unroll 1
      for (int first = 0; first < passes; first += together) {
        unsigned words[together][4];
#pragma unroll
        for (int pass = 0; pass < together; ++pass)
          loadShared(words[pass], placeOfPass(kTile, first + pass));
#pragma unroll
        for (int pass = 0; pass < together; ++pass) {
          float x[chunk];
          unpackOperand<Raw>(x, words[pass]);
          transformAndStore(x, kTile, first + pass, k0);
        }
      }
    }
  }

private:
  __device__ __forceinline__ SharedAddress placeOfPass(SharedAddress kTile, int pass) const {
    return kTile + placeOf<S::chunks>(row, column / chunk) + pass * (rowsAPass * S::chunks * 16);
  }
  __device__ __forceinline__ void transformAndStore(float (&x)[chunk], SharedAddress kTile,
                                                    int pass, int k0) const {
    const int atRow = row + pass * rowsAPass;
    const OperandPlace at{batch, outer0 + (operand.isAlongK() ? atRow : column),
                          k0 + (operand.isAlongK() ? column : atRow)};
    transformOperand<operand.isAlongK(), kExtent>(x, transformed.function, at,
                                                  isKWhole || k0 + depth <= kExtent);
    unsigned words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w)
      words[w] = packPair(static_cast<T *>(nullptr), x[2 * w], x[2 * w + 1]);
    storeShared(placeOfPass(kTile, pass), words);
  }
  /// How many elements of a chunk are in the matrix.
  __device__ __forceinline__ int inBounds(int pass, int k0) const {
    const int atRow = row + pass * rowsAPass + (operand.isAlongK() ? outer0 : k0),
              atColumn = column + (operand.isAlongK() ? k0 : outer0);
    constexpr int rows = int(operand.isAlongK() ? outerExtent : kExtent),
                  columns = int(operand.isAlongK() ? kExtent : outerExtent);
    constexpr bool areRowsWhole = operand.isAlongK() ? isOuterWhole : isKWhole,
                   areColumnsWhole = operand.isAlongK() ? isKWhole : isOuterWhole;
    if (!areRowsWhole && atRow >= rows) return 0;
    return areColumnsWhole || atColumn + chunk <= columns ? chunk
           : atColumn < columns                           ? columns - atColumn
                                                          : 0;
  }

  const Transformed &transformed;
  int row, column, batch, outer0;
  const Raw *from;
};

/// The copies of an operand that is transformed, and of one that is not.
template <typename T, typename Source>
constexpr bool isTransformed = true;
template <typename T>
constexpr bool isTransformed<T, const T *> = false;

/// Multiplies all k-tiles of a tile: stages - 1 of them are in flight while one is transformed and
/// multiplied. A and B: pointers to elements, or TransformedOf.
template <GemmProblem gemm, Tile tile, typename T, typename A, typename B>
__device__ __forceinline__ void multiplyTransformed(Accumulators<gemm, tile> &accumulators, A a,
                                                    B b, const TileStart &at, SharedAddress shared,
                                                    int warpM, int warpN) {
  using P = TileConfig<gemm, tile>;
  static_assert(isTransformed<T, A> != isTransformed<T, B>, "one of the operands is transformed");
  auto copyA = [&] {
    if constexpr (isTransformed<T, A>)
      return TransformedKTile<gemm.a, tile.m, gemm.m, gemm.k, tile.k, P::threads, T, A>(
          a, at.batch * gemm.a.batch, at.batch, at.m);
    else
      return KTileCopy<gemm.a, tile.m, gemm.m, gemm.k, tile.k, P::threads, T>(
          a + at.batch * gemm.a.batch, at.m);
  }();
  auto copyB = [&] {
    if constexpr (isTransformed<T, B>)
      return TransformedKTile<gemm.b, tile.n, gemm.n, gemm.k, tile.k, P::threads, T, B>(
          b, at.batch * gemm.b.batch, at.batch, at.n);
    else
      return KTileCopy<gemm.b, tile.n, gemm.n, gemm.k, tile.k, P::threads, T>(
          b + at.batch * gemm.b.batch, at.n);
  }();
  const auto copy = [&](int kTile) {
    if (kTile < P::kTiles) {
      const SharedAddress stage = shared + kTile % tile.stages * P::stageBytes;
      copyA.copyNext(stage, kTile * tile.k);
      copyB.copyNext(stage + P::bytesA, kTile * tile.k);
    }
    commitCopies();
  };
#pragma unroll 1
  for (int kTile = 0; kTile < tile.stages - 1; ++kTile) copy(kTile);
#pragma unroll 1
  for (int kTile = 0; kTile < P::kTiles; ++kTile) {
    const SharedAddress stage = shared + kTile % tile.stages * P::stageBytes;
    waitForCopies<tile.stages - 2>();
    if constexpr (isTransformed<T, A>) copyA.transformLanded(stage, kTile * tile.k);
    else copyB.transformLanded(stage + P::bytesA, kTile * tile.k);
    ptx::barrier();  // the k-tile is there, and the one before it has been read by all
    copy(kTile + tile.stages - 1);
    multiplyStage<gemm, tile, T>(accumulators, stage, warpM, warpN);
  }
  waitForCopies<0>();
  ptx::barrier();
}

/// An operand as the copies take it: its elements, or TransformedOf them.
template <typename T>
__device__ __forceinline__ const T *operandOf(const T *elements, NoTransform) {
  return elements;
}
template <typename Raw, typename Function>
__device__ __forceinline__ TransformedOf<Raw, Function> operandOf(const Raw *elements,
                                                                  const Function &transform) {
  return {elements, transform};
}

/// The whole kernel; launched as sm80_gemm.cuh says.
template <typename T, GemmProblem gemm, Tile tile, typename Arguments>
__device__ __forceinline__ void prologueGemm(const Arguments &args) {
  using P = TileConfig<gemm, tile>;
  const SharedAddress shared = dynamicShared();
  const TileStart at = tileStart<gemm, tile>(blockIdx.x);
  const int warp = threadIdx.x / 32, warpM = warp % tile.warpsM * P::warpM,
            warpN = warp / tile.warpsM * P::warpN;
  Accumulators<gemm, tile> accumulators = {};
  multiplyTransformed<gemm, tile, T>(accumulators, operandOf(args.a, args.transformA),
                                     operandOf(args.b, args.transformB), at, shared, warpM, warpN);
  runEpilogue<gemm, tile, T>(accumulators, at, shared, warpM, warpN, args.epilogue);
  ptx::barrier();
  storeTile<gemm, tile>(args.c, at, shared);
}

}  // namespace weft::sm80
