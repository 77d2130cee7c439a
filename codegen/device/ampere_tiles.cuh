// The shape of the contraction skeleton from sm_80 on (ampere_contraction.cuh): what a product and a tile are, what follows from
// them, and where slices of A and B lie in shared memory.
#pragma once

#include "weft/ampere.cuh"
#include "weft/vector.cuh"

namespace weft::ampere {

/// How A or B lies in memory: element strides of its outer axis (m or n), of k and of the batch; one of the first two is 1.
struct Operand {
  Offset outer, k, batch;
  bool isAligned;  // rows start at multiples of 16 bytes
  __host__ __device__ constexpr bool isAlongK() const { return k == 1; }
};

/// C is contiguous along n. isAligned: its rows start at multiples of 16 bytes.
struct Product {
  Offset batch, m, n, k;
  Operand a, b;
  Offset strideCm, batchStrideC;
  bool isAligned;
};

/// m, n: elements of C a block, 32 to 256; k: of a slice, 32 or 64; stages: slices in shared memory; warpsM x warpsN warps share the
/// tile; rasterM: tiles along m that are taken together before the next along n, so that what runs at one time shares slices in L2.
struct Tile {
  int m, n, k, stages, warpsM, warpsN, rasterM;
};

constexpr int elementBytes = 2, chunk = 8;  // a chunk: the elements of 16 bytes

/// What follows from a product and a tile.
template <Product product, Tile tile> struct Plan {
  static constexpr int threads = 32 * tile.warpsM * tile.warpsN;
  static constexpr int warpM = tile.m / tile.warpsM, warpN = tile.n / tile.warpsN;
  static constexpr int blocksM = warpM / 16, blocksN = warpN / 16;  // of 16 x 16 sums, a warp
  static constexpr int bytesA = tile.m * tile.k * elementBytes, bytesB = tile.n * tile.k * elementBytes;
  static constexpr int stageBytes = bytesA + bytesB, resultBytes = tile.m * tile.n * elementBytes;
  static constexpr int sharedBytes = tile.stages * stageBytes > resultBytes ? tile.stages * stageBytes : resultBytes;
  static constexpr int slices = int((product.k + tile.k - 1) / tile.k);
  static constexpr int tilesM = int((product.m + tile.m - 1) / tile.m), tilesN = int((product.n + tile.n - 1) / tile.n);
};

/// The first element of a tile.
struct TileStart {
  int batch, m, n;
};
template <Product product, Tile tile> __device__ __forceinline__ TileStart tileStart(int index) {
  using P = Plan<product, tile>;
  constexpr int perBatch = P::tilesM * P::tilesN, perGroup = tile.rasterM * P::tilesN;
  const int inBatch = index % perBatch, group = inBatch / perGroup, inGroup = inBatch % perGroup;
  const int rows = smaller(tile.rasterM, P::tilesM - group * tile.rasterM);
  return {index / perBatch, (group * tile.rasterM + inGroup % rows) * tile.m, inGroup / rows * tile.n};
}

/// A matrix in shared memory: rows of `chunks` x 16 bytes. Chunks are permuted within 128 bytes, so that eight neighbouring rows of
/// one chunk lie in different banks, as ldmatrix reads them, and so do eight neighbouring chunks of a row, as copies write them.
template <int chunks> __device__ __forceinline__ int placeOf(int row, int column) {
  constexpr int rowsOfBanks = chunks < 8 ? 8 / chunks : 1, span = chunks < 8 ? chunks : 8;
  return (row * chunks + (column ^ row / rowsOfBanks % span)) * 16;
}

/// A slice: `side` of m or n by `depth` of k, its rows as they are contiguous in memory.
template <Operand operand, int side, int depth> struct Slice {
  static constexpr int rows = operand.isAlongK() ? side : depth, chunks = (operand.isAlongK() ? depth : side) / chunk;
};

/// The 16 x 16 elements of a slice from (outer, k) on, a quarter a word: k runs along words of a row of A or a column of B.
template <Operand operand, int side, int depth, bool isA>
__device__ __forceinline__ void loadBlock(unsigned (&words)[4], SharedAddress slice, int outer, int k) {
  constexpr int chunks = Slice<operand, side, depth>::chunks;
  const int lane = threadIdx.x % 32, block = lane / 8;
  const int outerHalf = isA ? block % 2 : block / 2, kHalf = isA ? block / 2 : block % 2;
  if constexpr (operand.isAlongK())
    loadMatrices(words, slice + placeOf<chunks>(outer + outerHalf * 8 + lane % 8, k / chunk + kHalf));
  else
    loadTransposed(words, slice + placeOf<chunks>(k + kHalf * 8 + lane % 8, outer / chunk + outerHalf));
}

}  // namespace weft::ampere
