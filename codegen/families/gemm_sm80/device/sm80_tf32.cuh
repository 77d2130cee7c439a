// Contractions of f32 operands that are read as tf32, from sm_80 on: the kernel template of
// sm80_gemm.cuh, whose tiles, circular buffer of stages and fragments these are, with elements of
// 32 bits. A k-tile is 32 of k, a step of a warp 8; accumulators leave from registers, in pairs of
// a row.
//
// Elements lie in shared memory as they came, and are rounded to nearest on the way to registers,
// where the tensor cores would cut their lower 13 bits off. Operands that are contiguous along
// their outer axis (m or n) are read by words, since ldmatrix transposes elements of 16 bits alone.
//
// GemmProblem::isAligned says of C here that its rows start at multiples of two elements.
#pragma once

#include "weft/sm80_gemm.cuh"
#include "weft/sm80_tf32_mma.cuh"

namespace weft::sm80 {

constexpr int floatBytes = 4, floatChunk = 4;  // a chunk: the elements of 16 bytes

template <GemmProblem gemm, Tile tile>
struct Tf32TileConfig : TileConfig<gemm, tile> {
  static constexpr int bytesA = tile.m * tile.k * floatBytes, bytesB = tile.n * tile.k * floatBytes;
  static constexpr int stageBytes = bytesA + bytesB, sharedBytes = tile.stages * stageBytes;
  static_assert(tile.k == 32, "rows of 128 bytes along k");
};

/// A kTile: `side` of m or n by `depth` of k, its rows as they are contiguous in memory.
template <Operand operand, int side, int depth>
struct FloatKTileLayout {
  static constexpr int rows = operand.isAlongK() ? side : depth,
                       chunks = (operand.isAlongK() ? depth : side) / floatChunk;
  /// Where a chunk lies. Rows along k as ldmatrix reads them (placeOf); of others a warp reads two
  /// chunks of four neighbouring rows at a time, by words.
  static __device__ __forceinline__ int placeOf(int row, int column) {
    if constexpr (operand.isAlongK()) return weft::sm80::placeOf<chunks>(row, column);
    else return (row * chunks + (column ^ row % 4 * 2)) * 16;
  }
};

/// The 16 x 8 elements of a k-tile from (outer, k) on, a quarter a word, in the order of the blocks
/// of 16-bit elements (loadBlock).
template <Operand operand, int side, int depth, bool isA>
__device__ __forceinline__ void loadTf32(unsigned (&words)[4], SharedAddress kTile, int outer,
                                         int k) {
  using S = FloatKTileLayout<operand, side, depth>;
  const int lane = threadIdx.x % 32;
  if constexpr (operand.isAlongK()) {
    const int block = lane / 8, outerHalf = isA ? block % 2 : block / 2,
              kHalf = isA ? block / 2 : block % 2;
    loadMatrices(words,
                 kTile + S::placeOf(outer + outerHalf * 8 + lane % 8, k / floatChunk + kHalf));
  } else {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int outerHalf = isA ? w % 2 : w / 2, kHalf = isA ? w / 2 : w % 2,
                column = outer + outerHalf * 8 + lane / 4;
      words[w] = loadSharedWord(kTile + S::placeOf(k + kHalf * 4 + lane % 4, column / floatChunk) +
                                column % floatChunk * floatBytes);
    }
  }
#pragma unroll
  for (int w = 0; w < 4; ++w) words[w] = roundToTf32(words[w]);
}

/// The part of every k-tile of one operand that one thread copies. Neighbouring threads follow the
/// rows.
template <Operand operand, int side, Offset outerExtent, Offset kExtent, int depth, int threads>
class FloatKTileCopy {
  using S = FloatKTileLayout<operand, side, depth>;
  static constexpr int rowsAPass = threads / S::chunks, passes = S::rows / rowsAPass;
  static constexpr Offset pitch = operand.isAlongK() ? operand.outer : operand.k;
  static_assert(rowsAPass % (operand.isAlongK() ? 8 : 4) == 0 && S::rows % rowsAPass == 0,
                "passes are whole, and places of neighbouring ones alike");

public:
  __device__ __forceinline__ FloatKTileCopy(const float *matrix, int outer0)
      : row(threadIdx.x / S::chunks),
        column(threadIdx.x % S::chunks * floatChunk),
        outer0(outer0),
        from(matrix + (operand.isAlongK() ? (outer0 + row) * operand.outer + column
                                          : row * operand.k + outer0 + column)) {}

  /// Starts to copy the next kTile, whose first of k is k0: rows that start at multiples of 16
  /// bytes by chunks, any others by elements.
  __device__ __forceinline__ void copyNext(SharedAddress kTile, int k0) {
    const SharedAddress to = kTile + S::placeOf(row, column / floatChunk);
    if constexpr (operand.isAligned) {
#pragma unroll
      for (int pass = 0; pass < passes; ++pass)
        copyAsync(to + pass * (rowsAPass * S::chunks * 16), from + pass * (rowsAPass * pitch),
                  floatBytes * inBounds(pass, k0));
    } else {
#pragma unroll
      for (int pass = 0; pass < passes; ++pass) {
        const int count = inBounds(pass, k0);
#pragma unroll
        for (int e = 0; e < floatChunk; ++e)
          copyWordAsync(to + pass * (rowsAPass * S::chunks * 16) + e * floatBytes,
                        from + pass * (rowsAPass * pitch) + e, e < count ? floatBytes : 0);
      }
    }
    from += depth * operand.k;
  }

private:
  /// How many elements of a chunk are in the matrix.
  __device__ __forceinline__ int inBounds(int pass, int k0) const {
    const int atRow = row + pass * rowsAPass + (operand.isAlongK() ? outer0 : k0),
              atColumn = column + (operand.isAlongK() ? k0 : outer0);
    constexpr Offset rows = operand.isAlongK() ? outerExtent : kExtent,
                     columns = operand.isAlongK() ? kExtent : outerExtent;
    constexpr bool areRowsWhole = rows % (operand.isAlongK() ? side : depth) == 0,
                   areColumnsWhole = columns % (operand.isAlongK() ? depth : side) == 0;
    if (!areRowsWhole && atRow >= int(rows)) return 0;
    return areColumnsWhole || atColumn + floatChunk <= int(columns) ? floatChunk
           : atColumn < int(columns)                                ? int(columns) - atColumn
                                                                    : 0;
  }

  int row, column, outer0;
  const float *from;
};

/// Multiplies one stage. The next 8 of k are on the way to registers while 8 are multiplied.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ void multiplyTf32Stage(Accumulators<gemm, tile> &accumulators,
                                                  SharedAddress stage, int warpM, int warpN) {
  using P = Tf32TileConfig<gemm, tile>;
  unsigned a[2][P::blocksM][4], b[2][P::blocksN][4];
  const auto load = [&](int step) {
#pragma unroll
    for (int i = 0; i < P::blocksM; ++i)
      loadTf32<gemm.a, tile.m, tile.k, true>(a[step % 2][i], stage, warpM + i * 16, step * 8);
#pragma unroll
    for (int j = 0; j < P::blocksN; ++j)
      loadTf32<gemm.b, tile.n, tile.k, false>(b[step % 2][j], stage + P::bytesA, warpN + j * 16,
                                              step * 8);
  };
  load(0);
#pragma unroll
  for (int step = 0; step < tile.k / 8; ++step) {
    if (step + 1 < tile.k / 8) load(step + 1);
#pragma unroll
    for (int i = 0; i < P::blocksM; ++i) {
#pragma unroll
      for (int j = 0; j < P::blocksN; ++j) {
        float(&s)[8] = accumulators[i][j];
        const unsigned(&right)[4] = b[step % 2][j];
        multiplyTf32(s[0], s[1], s[2], s[3], a[step % 2][i], right[0], right[1]);
        multiplyTf32(s[4], s[5], s[6], s[7], a[step % 2][i], right[2], right[3]);
      }
    }
  }
}

/// Multiplies all k-tiles of a tile: stages - 1 of them are in flight while one is multiplied.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ void multiplyTf32Tile(Accumulators<gemm, tile> &accumulators,
                                                 const float *a, const float *b,
                                                 const TileStart &at, SharedAddress shared,
                                                 int warpM, int warpN) {
  using P = Tf32TileConfig<gemm, tile>;
  FloatKTileCopy<gemm.a, tile.m, gemm.m, gemm.k, tile.k, P::threads> copyA(
      a + at.batch * gemm.a.batch, at.m);
  FloatKTileCopy<gemm.b, tile.n, gemm.n, gemm.k, tile.k, P::threads> copyB(
      b + at.batch * gemm.b.batch, at.n);
  const auto copy = [&](int kTile) {
    if (kTile < P::kTiles) {
      const SharedAddress stage = shared + kTile % tile.stages * P::stageBytes;
      copyA.copyNext(stage, kTile * tile.k);
      copyB.copyNext(stage + P::bytesA, kTile * tile.k);
    }
    commitCopies();
  };
#pragma unroll
  for (int kTile = 0; kTile < tile.stages - 1; ++kTile) copy(kTile);
#pragma unroll 1
  for (int kTile = 0; kTile < P::kTiles; ++kTile) {
    waitForCopies<tile.stages - 2>();
    ptx::barrier();  // the k-tile has landed, and the one before it has been read by all
    copy(kTile + tile.stages - 1);
    multiplyTf32Stage<gemm, tile>(accumulators, shared + kTile % tile.stages * P::stageBytes, warpM,
                                  warpN);
  }
}

/// The whole kernel; launched with Tf32TileConfig::threads and Tf32TileConfig::sharedBytes, a block
/// for every tile of every batch element.
template <GemmProblem gemm, Tile tile, typename Epilogue>
__device__ __forceinline__ void sm80Tf32Gemm(
    const Args<float, float, float, NoTransform, NoTransform, AllTokens, Epilogue> &args) {
  using P = Tf32TileConfig<gemm, tile>;
  const TileStart at = tileStart<gemm, tile>(blockIdx.x);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpM = warp % tile.warpsM * P::warpM,
            warpN = warp / tile.warpsM * P::warpN;
  Accumulators<gemm, tile> accumulators = {};
  multiplyTf32Tile<gemm, tile>(accumulators, args.a, args.b, at, dynamicShared(), warpM, warpN);
#pragma unroll
  for (int i = 0; i < P::blocksM; ++i) {
#pragma unroll
    for (int j = 0; j < P::blocksN; ++j) {
      const Fragment fragment{at.batch, at.m + warpM + i * 16 + lane / 4,
                              at.n + warpN + j * 16 + lane % 4 * 2};
      args.epilogue(accumulators[i][j], fragment);
      Vec<float, 8> values;
#pragma unroll
      for (int e = 0; e < 8; ++e) values.at[e] = accumulators[i][j][e];
      storeFragment<gemm.m, gemm.n, gemm.strideCm, gemm.isAligned>(
          args.c + at.batch * gemm.batchStrideC, values, fragment);
    }
  }
}

}  // namespace weft::sm80
