// Factors of an operand that is scaled by one factor for each of its rows and run of whole k-tiles
// (sm90_scaled.cuh), and how the lanes that need them load them.
#pragma once

#include "weft/sm90_epilogue.cuh"

namespace weft::sm90 {

/// Where factors lie: element strides of batch elements, of rows of A, and from a run of k to the
/// next; k-tiles of a run.
struct FactorPlaces {
  Offset batch, row, run;
  int kTiles;
};

/// multiplyScaledTile takes OfRows where a GEMM has NoScaling.
template <FactorPlaces places>
struct KTileFactors {
  static constexpr bool isScaled = true;
  const float *elements;

  /// Of a lane's rows of every block of 64. The four lanes that have the same rows ask for four
  /// k-tiles at once, and hand them to each other, four k-tiles ahead: what a thread asks for waits
  /// behind all k-tiles that are in flight.
  template <GemmProblem gemm, Tile tile>
  struct OfRows {
    using P = TileConfig<gemm, tile>;
    static constexpr int rowBlocks = P::rowBlocks, together = 4,
                         groups = smaller(2, (P::kTiles + together - 1) / together);
    const float *from[rowBlocks][2];
    float of[groups][rowBlocks][2];  // of this group of k-tiles and the next
    __device__ __forceinline__ OfRows(const KTileFactors &factors,
                                      const Subtiles<gemm, tile> &subtiles) {
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = subtiles.at.m + subtiles.firstRow + block * 64 +
                          threadIdx.x % warpgroup / 32 * 16 + threadIdx.x % 32 / 4 + half * 8;
          from[block][half] = factors.elements + subtiles.at.batch * places.batch +
                              atMost(row, gemm.m - 1) * places.row;
        }
#pragma unroll
      for (int group = 0; group < groups; ++group) load(group, group);
    }
    __device__ __forceinline__ void load(int place, int group) {
      const Offset run =
          smaller(group * together + int(threadIdx.x % together), P::kTiles - 1) / places.kTiles;
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          of[place][block][half] = loadOne(from[block][half] + run * places.run);
    }
    /// Those of one kTile, the first and one after the other. All lanes of the warp take
    /// kTileAccumulators.
    __device__ __forceinline__ void take(float (&factor)[rowBlocks][2], int kTile) {
      const int lane = threadIdx.x % 32 / together * together + kTile % together;
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          factor[block][half] =
              ptx::floatFromBits(__shfl_sync(~0u, bitsOf(of[0][block][half]), lane));
      if (kTile % together < together - 1) return;
#pragma unroll
      for (int group = 1; group < groups; ++group)
#pragma unroll
        for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
          for (int half = 0; half < 2; ++half) of[group - 1][block][half] = of[group][block][half];
      const int next = kTile / together + groups;
      if (next * together < P::kTiles) load(groups - 1, next);
    }
  };
};

}  // namespace weft::sm90
