// Contractions from sm_80 on one of whose operands is made on load (prologue.cuh): the skeleton of ampere_contraction.cuh, whose tiles, ring of
// stages and fragments these are.
//
// Slices of the tensor that the operand is made of come by asynchronous copies where its elements are of 16 bits and its rows start at multiples
// of 16 bytes. Each thread then rewrites the chunks that it copied itself, behind its wait and before the block's barrier. Any others it
// makes in registers, between loads and stores.
#pragma once

#include "weft/ampere_contraction.cuh"
#include "weft/prologue.cuh"

namespace weft::ampere {

/// The part of every slice of one operand that one thread copies and makes. Neighbouring threads follow the rows.
template <Operand operand, int side, Offset outerExtent, Offset kExtent, int depth, int threads, typename T, typename Made> class MadeSlice {
  using S = Slice<operand, side, depth>;
  using Raw = typename Made::Element;
  static constexpr int rowsAPass = threads / S::chunks, passes = S::rows / rowsAPass, together = passes < 4 ? passes : 4;
  static constexpr Offset pitch = operand.isAlongK() ? operand.outer : operand.k;
  static constexpr bool isOuterWhole = outerExtent % side == 0, isKWhole = kExtent % depth == 0;
  static constexpr bool isInPlace = operand.isAligned && sizeof(Raw) == elementBytes;
  static_assert(rowsAPass % 8 == 0 && S::rows % rowsAPass == 0 && passes % together == 0,
                "passes are whole, and places of neighbouring passes alike");

public:
  __device__ __forceinline__ MadeSlice(const Made &made, Offset start, int batch, int outer0)
      : made(made), row(threadIdx.x / S::chunks), column(threadIdx.x % S::chunks * chunk), batch(batch), outer0(outer0),
        from(made.elements + start + (operand.isAlongK() ? (outer0 + row) * operand.outer + column : row * operand.k + outer0 + column)) {}

  /// Starts to copy the next slice, whose first of k is k0, or makes it.
  __device__ __forceinline__ void copyNext(SharedAddress slice, int k0) {
    if constexpr (isInPlace) {
#pragma unroll
      for (int pass = 0; pass < passes; ++pass)
        copyAsync(placeOfPass(slice, pass), from + pass * (rowsAPass * pitch), elementBytes * inBounds(pass, k0));
    } else {
      float x[together][chunk];
#pragma unroll 1
      for (int first = 0; first < passes; first += together) {
#pragma unroll
        for (int pass = 0; pass < together; ++pass) loadOperand(x[pass], from + (first + pass) * (rowsAPass * pitch), inBounds(first + pass, k0));
#pragma unroll
        for (int pass = 0; pass < together; ++pass) makeAndStore(x[pass], slice, first + pass, k0);
      }
    }
    from += depth * operand.k;
  }

  /// Makes the operand of a slice that has landed.
  __device__ __forceinline__ void finish(SharedAddress slice, int k0) const {
    if constexpr (isInPlace) {
#pragma unroll 1
      for (int first = 0; first < passes; first += together) {
        unsigned words[together][4];
#pragma unroll
        for (int pass = 0; pass < together; ++pass) loadShared(words[pass], placeOfPass(slice, first + pass));
#pragma unroll
        for (int pass = 0; pass < together; ++pass) {
          float x[chunk];
          unpackOperand<Raw>(x, words[pass]);
          makeAndStore(x, slice, first + pass, k0);
        }
      }
    }
  }

private:
  __device__ __forceinline__ SharedAddress placeOfPass(SharedAddress slice, int pass) const {
    return slice + placeOf<S::chunks>(row, column / chunk) + pass * (rowsAPass * S::chunks * 16);
  }
  __device__ __forceinline__ void makeAndStore(float (&x)[chunk], SharedAddress slice, int pass, int k0) const {
    const int atRow = row + pass * rowsAPass;
    const OperandPlace at{batch, outer0 + (operand.isAlongK() ? atRow : column), k0 + (operand.isAlongK() ? column : atRow)};
    makeOperand<operand.isAlongK(), kExtent>(x, made.function, at, isKWhole || k0 + depth <= kExtent);
    unsigned words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = packPair(static_cast<T *>(nullptr), x[2 * w], x[2 * w + 1]);
    storeShared(placeOfPass(slice, pass), words);
  }
  /// How many elements of a chunk are in the matrix.
  __device__ __forceinline__ int inBounds(int pass, int k0) const {
    const int atRow = row + pass * rowsAPass + (operand.isAlongK() ? outer0 : k0), atColumn = column + (operand.isAlongK() ? k0 : outer0);
    constexpr int rows = int(operand.isAlongK() ? outerExtent : kExtent), columns = int(operand.isAlongK() ? kExtent : outerExtent);
    constexpr bool areRowsWhole = operand.isAlongK() ? isOuterWhole : isKWhole, areColumnsWhole = operand.isAlongK() ? isKWhole : isOuterWhole;
    if (!areRowsWhole && atRow >= rows) return 0;
    return areColumnsWhole || atColumn + chunk <= columns ? chunk : atColumn < columns ? columns - atColumn : 0;
  }

  const Made &made;
  int row, column, batch, outer0;
  const Raw *from;
};

/// The copies of an operand that is made, and of one that is not.
template <typename T, typename Source> constexpr bool isMade = true;
template <typename T> constexpr bool isMade<T, const T *> = false;

/// Multiplies all slices of a tile: stages - 1 of them are on their way while one is made and multiplied. A and B: pointers to elements, or MadeOf.
template <Product product, Tile tile, typename T, typename A, typename B>
__device__ __forceinline__ void multiplyMade(Sums<product, tile> &sums, A a, B b, const TileStart &at, SharedAddress shared, int warpM,
                                             int warpN) {
  using P = Plan<product, tile>;
  static_assert(isMade<T, A> != isMade<T, B>, "one of the operands is made");
  auto copyA = [&] {
    if constexpr (isMade<T, A>)
      return MadeSlice<product.a, tile.m, product.m, product.k, tile.k, P::threads, T, A>(a, at.batch * product.a.batch, at.batch, at.m);
    else
      return SliceCopy<product.a, tile.m, product.m, product.k, tile.k, P::threads, T>(a + at.batch * product.a.batch, at.m);
  }();
  auto copyB = [&] {
    if constexpr (isMade<T, B>)
      return MadeSlice<product.b, tile.n, product.n, product.k, tile.k, P::threads, T, B>(b, at.batch * product.b.batch, at.batch, at.n);
    else
      return SliceCopy<product.b, tile.n, product.n, product.k, tile.k, P::threads, T>(b + at.batch * product.b.batch, at.n);
  }();
  const auto copy = [&](int slice) {
    if (slice < P::slices) {
      const SharedAddress stage = shared + slice % tile.stages * P::stageBytes;
      copyA.copyNext(stage, slice * tile.k);
      copyB.copyNext(stage + P::bytesA, slice * tile.k);
    }
    commitCopies();
  };
#pragma unroll 1
  for (int slice = 0; slice < tile.stages - 1; ++slice) copy(slice);
#pragma unroll 1
  for (int slice = 0; slice < P::slices; ++slice) {
    const SharedAddress stage = shared + slice % tile.stages * P::stageBytes;
    waitForCopies<tile.stages - 2>();
    if constexpr (isMade<T, A>) copyA.finish(stage, slice * tile.k);
    else copyB.finish(stage + P::bytesA, slice * tile.k);
    ptx::barrier();                       // the slice is there, and the one before it has been read by all
    copy(slice + tile.stages - 1);
    multiplyStage<product, tile, T>(sums, stage, warpM, warpN);
  }
  waitForCopies<0>();
  ptx::barrier();
}

/// The whole kernel; launched as ampere_contraction.cuh says.
template <typename T, Product product, Tile tile, typename A, typename B, typename Epilogue>
__device__ __forceinline__ void contractionOfMade(A a, B b, T *c, const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  const SharedAddress shared = dynamicShared();
  const TileStart at = tileStart<product, tile>(blockIdx.x);
  const int warp = threadIdx.x / 32, warpM = warp % tile.warpsM * P::warpM, warpN = warp / tile.warpsM * P::warpN;
  Sums<product, tile> sums = {};
  multiplyMade<product, tile, T>(sums, a, b, at, shared, warpM, warpN);
  finishSums<product, tile, T>(sums, at, shared, warpM, warpN, epilogue);
  ptx::barrier();
  storeTile<product, tile>(c, at, shared);
}

}  // namespace weft::ampere
