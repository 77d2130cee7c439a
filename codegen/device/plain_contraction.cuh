// Plain contraction: one batched strided matrix product C[m,n] = scale * sum over k of A[m,k] B[k,n] by FMA in fp32.
// Correct for every extent and stride; the placeholder for shapes that have no tensor-core kernel.
//
// A block computes a tileM x tileN tile. Slices of tileK columns of A and rows of B go through shared memory as fp32; a
// thread holds threadM x threadN elements that lie a block's thread count apart, so that neighbouring threads read and
// write neighbouring elements.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// Extents and element strides; compile-time constants of the emitted kernel.
struct ContractionShape {
  Offset batch, m, n, k;
  Offset batchStrideA, strideAm, strideAk;
  Offset batchStrideB, strideBk, strideBn;
  Offset batchStrideC, strideCm, strideCn;
};

/// Elements of the tile of one block and of one thread.
template <int TileM, int TileN, int TileK, int ThreadM, int ThreadN> struct ContractionTile {
  static constexpr int tileM = TileM, tileN = TileN, tileK = TileK, threadM = ThreadM, threadN = ThreadN;
  static constexpr int threadsM = TileM / ThreadM, threadsN = TileN / ThreadN, threads = threadsM * threadsN;
};

/// The slices of A and B in shared memory; the padding keeps column writes off one bank.
template <typename Tile> struct ContractionSlices {
  float a[Tile::tileK][Tile::tileM + 1];
  float b[Tile::tileK][Tile::tileN + 1];
};

/// Copies a side x tileK slice to shared memory, zero outside the matrix. Neighbouring threads follow the axis that is
/// contiguous in memory.
template <int side, int tileK, int threads, typename T>
__device__ __forceinline__ void loadSlice(float (&slice)[tileK][side + 1], const T *from, Offset row0, Offset rows,
                                          Offset rowStride, Offset k0, Offset k, Offset strideK) {
#pragma unroll
  for (int first = 0; first < side * tileK; first += threads) {
    const int flat = first + threadIdx.x;
    const int row = strideK == 1 ? flat / tileK : flat % side;
    const int column = strideK == 1 ? flat % tileK : flat / side;
    if (side * tileK % threads != 0 && flat >= side * tileK) break;
    const bool inside = row0 + row < rows && k0 + column < k;
    slice[column][row] = inside ? widen(from[(row0 + row) * rowStride + (k0 + column) * strideK]) : 0.0f;
  }
}

/// The whole kernel: one tile for each block, tiles of n fastest, then m, then batch.
template <typename Tile, typename A, typename B, typename C>
__device__ __forceinline__ void plainContraction(const ContractionShape &shape, float scale, const A *a, const B *b, C *c,
                                                 ContractionSlices<Tile> &slices) {
  const Offset tilesN = (shape.n + Tile::tileN - 1) / Tile::tileN, tilesM = (shape.m + Tile::tileM - 1) / Tile::tileM;
  const Offset n0 = blockIdx.x % tilesN * Tile::tileN, m0 = blockIdx.x / tilesN % tilesM * Tile::tileM;
  const Offset batch = blockIdx.x / tilesN / tilesM;
  a += batch * shape.batchStrideA;
  b += batch * shape.batchStrideB;
  c += batch * shape.batchStrideC;
  const int threadInM = threadIdx.x / Tile::threadsN, threadInN = threadIdx.x % Tile::threadsN;
  float sum[Tile::threadM][Tile::threadN] = {};
  for (Offset k0 = 0; k0 < shape.k; k0 += Tile::tileK) {
    loadSlice<Tile::tileM, Tile::tileK, Tile::threads>(slices.a, a, m0, shape.m, shape.strideAm, k0, shape.k, shape.strideAk);
    loadSlice<Tile::tileN, Tile::tileK, Tile::threads>(slices.b, b, n0, shape.n, shape.strideBn, k0, shape.k, shape.strideBk);
    ptx::barrier();
#pragma unroll 4
    for (int k = 0; k < Tile::tileK; ++k) {
      float own[Tile::threadM];
#pragma unroll
      for (int m = 0; m < Tile::threadM; ++m) own[m] = slices.a[k][threadInM + m * Tile::threadsM];
#pragma unroll
      for (int n = 0; n < Tile::threadN; ++n) {
        const float other = slices.b[k][threadInN + n * Tile::threadsN];
#pragma unroll
        for (int m = 0; m < Tile::threadM; ++m) sum[m][n] += own[m] * other;
      }
    }
    ptx::barrier();
  }
#pragma unroll
  for (int m = 0; m < Tile::threadM; ++m) {
#pragma unroll
    for (int n = 0; n < Tile::threadN; ++n) {
      const Offset row = m0 + threadInM + m * Tile::threadsM, column = n0 + threadInN + n * Tile::threadsN;
      if (row < shape.m && column < shape.n)
        c[row * shape.strideCm + column * shape.strideCn] = narrow<C>(scale * sum[m][n]);
    }
  }
}

}  // namespace weft
