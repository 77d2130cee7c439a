// The shape of the GEMM kernel template from sm_80 on (sm80_gemm.cuh): what a GEMM and a tile are,
// what follows from them, and where k-tiles of A and B lie in shared memory.
#pragma once

#include "weft/sm80.cuh"
#include "weft/vector.cuh"

namespace weft::sm80 {

/// How A or B lies in memory: element strides of its outer axis (m or n), of k and of the batch;
/// one of the first two is 1.
struct Operand {
  Offset outer, k, batch;
  bool isAligned;  // rows start at multiples of 16 bytes
  __host__ __device__ constexpr bool isAlongK() const { return k == 1; }
};

/// C is contiguous along n. isAligned: its rows start at multiples of 16 bytes.
struct GemmProblem {
  Offset batch, m, n, k;
  Operand a, b;
  Offset strideCm, batchStrideC;
  bool isAligned;
};

/// m, n: elements of C a block, 32 to 256; k: of a k-tile, 32 or 64; stages: k-tiles in shared
/// memory; warpsM x warpsN warps share the tile; groupM: tiles along m that are taken together
/// before the next along n, so that what runs at one time shares k-tiles in L2.
struct Tile {
  int m, n, k, stages, warpsM, warpsN, groupM;
};

constexpr int elementBytes = 2, chunk = 8;  // a chunk: the elements of 16 bytes

/// What follows from a GEMM and a tile.
template <GemmProblem gemm, Tile tile>
struct TileConfig {
  static constexpr int threads = 32 * tile.warpsM * tile.warpsN;
  static constexpr int warpM = tile.m / tile.warpsM, warpN = tile.n / tile.warpsN;
  static constexpr int blocksM = warpM / 16, blocksN = warpN / 16;  // of 16 x 16 sums, a warp
  static constexpr int bytesA = tile.m * tile.k * elementBytes,
                       bytesB = tile.n * tile.k * elementBytes;
  static constexpr int stageBytes = bytesA + bytesB, resultBytes = tile.m * tile.n * elementBytes;
  static constexpr int sharedBytes = larger(tile.stages * stageBytes, resultBytes);
  static constexpr int kTiles = int((gemm.k + tile.k - 1) / tile.k);
  static constexpr int tilesM = int((gemm.m + tile.m - 1) / tile.m),
                       tilesN = int((gemm.n + tile.n - 1) / tile.n);
};

/// The first element of a tile.
struct TileStart {
  int batch, m, n;
};
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ TileStart tileStart(int index) {
  using P = TileConfig<gemm, tile>;
  constexpr int perBatch = P::tilesM * P::tilesN, perGroup = tile.groupM * P::tilesN;
  const int inBatch = index % perBatch, group = inBatch / perGroup, inGroup = inBatch % perGroup;
  const int rows = smaller(tile.groupM, P::tilesM - group * tile.groupM);
  return {index / perBatch, (group * tile.groupM + inGroup % rows) * tile.m,
          inGroup / rows * tile.n};
}

/// A matrix in shared memory: rows of `chunks` x 16 bytes. Chunks are permuted within 128 bytes, so
/// that eight neighbouring rows of one chunk lie in different banks, as ldmatrix reads them, and so
/// do eight neighbouring chunks of a row, as copies write them.
template <int chunks>
__device__ __forceinline__ int placeOf(int row, int column) {
  constexpr int rowsOfBanks = chunks < 8 ? 8 / chunks : 1, span = chunks < 8 ? chunks : 8;
  return (row * chunks + (column ^ row / rowsOfBanks % span)) * 16;
}

/// A kTile: `side` of m or n by `depth` of k, its rows as they are contiguous in memory.
template <Operand operand, int side, int depth>
struct KTileLayout {
  static constexpr int rows = operand.isAlongK() ? side : depth,
                       chunks = (operand.isAlongK() ? depth : side) / chunk;
};

/// The 16 x 16 elements of a k-tile from (outer, k) on, a quarter a word: k runs along words of a
/// row of A or a column of B.
template <Operand operand, int side, int depth, bool isA>
__device__ __forceinline__ void loadBlock(unsigned (&words)[4], SharedAddress kTile, int outer,
                                          int k) {
  constexpr int chunks = KTileLayout<operand, side, depth>::chunks;
  const int lane = threadIdx.x % 32, block = lane / 8;
  const int outerHalf = isA ? block % 2 : block / 2, kHalf = isA ? block / 2 : block % 2;
  if constexpr (operand.isAlongK())
    loadMatrices(words,
                 kTile + placeOf<chunks>(outer + outerHalf * 8 + lane % 8, k / chunk + kHalf));
  else
    loadTransposed(words,
                   kTile + placeOf<chunks>(k + kHalf * 8 + lane % 8, outer / chunk + outerHalf));
}

}  // namespace weft::sm80
