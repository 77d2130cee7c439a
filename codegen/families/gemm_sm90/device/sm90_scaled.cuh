// Products of an operand that is scaled by one factor for each of its rows and run of whole k-tiles, as the last step of a decomposed softmax
// does ("Recomposing Softmax Layers", section 3.2): the accumulators of a k-tile's products are scaled in its place, and nothing is rewritten in shared
// memory. So TMA brings both operands as they are, and an element of the result costs one more GEMM in fp32 for each kTile.
#pragma once

#include "weft/sm90_gemm.cuh"

namespace weft::sm90 {

/// Where factors lie: element strides of batch elements, of rows of A, and from a run of k to the next; k-tiles of a run.
struct FactorPlaces {
  Offset batch, row, run;
  int kTiles;
};

template <FactorPlaces places> struct KTileFactors {
  static constexpr bool isScaled = true;
  const float *elements;

  /// Of a lane's rows of every block of 64. The four lanes that have the same rows ask for four k-tiles at once, and hand them to each other,
  /// four k-tiles ahead: what a thread asks for waits behind all k-tiles that are in flight.
  template <GemmProblem gemm, Tile tile> struct OfRows {
    using P = TileConfig<gemm, tile>;
    static constexpr int rowBlocks = P::rowBlocks, together = 4, groups = smaller(2, (P::kTiles + together - 1) / together);
    const float *from[rowBlocks][2];
    float of[groups][rowBlocks][2];  // of this group of k-tiles and the next
    __device__ __forceinline__ OfRows(const KTileFactors &factors, const Subtiles<gemm, tile> &subtiles) {
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = subtiles.at.m + subtiles.firstRow + block * 64 + threadIdx.x % warpgroup / 32 * 16 + threadIdx.x % 32 / 4 + half * 8;
          from[block][half] = factors.elements + subtiles.at.batch * places.batch + atMost(row, gemm.m - 1) * places.row;
        }
#pragma unroll
      for (int group = 0; group < groups; ++group) load(group, group);
    }
    __device__ __forceinline__ void load(int place, int group) {
      const Offset run = smaller(group * together + int(threadIdx.x % together), P::kTiles - 1) / places.kTiles;
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) of[place][block][half] = loadOne(from[block][half] + run * places.run);
    }
    /// Those of one kTile, the first and one after the other. All lanes of the warp take kTileAccumulators.
    __device__ __forceinline__ void take(float (&factor)[rowBlocks][2], int kTile) {
      const int lane = threadIdx.x % 32 / together * together + kTile % together;
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) factor[block][half] = ptx::floatFromBits(__shfl_sync(~0u, bitsOf(of[0][block][half]), lane));
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

#if !defined(WEFT_EMULATE)
  /// As multiplyTile of the plain skeleton; all stages have been handed back when it returns.
  template <typename A, typename B, GemmProblem gemm, Tile tile>
  __device__ __forceinline__ static void multiplyTile(Accumulators<gemm, tile> &accumulators, Shared<gemm, tile> shared, PipelineState<tile.stages> &state,
                                                      OfRows<gemm, tile> &factors, int firstRow, bool isLeader) {
    using P = TileConfig<gemm, tile>;
    static_assert(tile.splitK == 1, "kTiles of a whole tile");
    constexpr int stepA = gemm.a.isAlongK() ? 32 : 16 * rowBytes, stepB = gemm.b.isAlongK() ? 32 : 16 * rowBytes;
#pragma unroll
    for (int block = 0; block < P::rowBlocks; ++block)
#pragma unroll
      for (int at = 0; at < tile.n / 2; ++at) accumulators[block][at] = 0.0f;
#pragma unroll 1
    for (int kTile = 0; kTile < P::kTiles; ++kTile) {
      wait(shared.full(state.stage), state.parity);
      const unsigned long long a = describeOperand(shared.a(state.stage) + firstRow * rowBytes, subtileBytes);
      const unsigned long long b = describeOperand(shared.b(state.stage), subtileBytes);
      Accumulators<gemm, tile> kTileAccumulators;
      fenceWgmma();
#pragma unroll
      for (int step = 0; step < rowBytes / 32; ++step)
#pragma unroll
        for (int block = 0; block < P::rowBlocks; ++block)
          multiplyElements<A, B, !gemm.a.isAlongK(), !gemm.b.isAlongK()>(kTileAccumulators[block], a + (block * subtileBytes + step * stepA >> 4), b + (step * stepB >> 4), step > 0);
      commitWgmma();
      float factor[P::rowBlocks][2];
      factors.take(factor, kTile);
      waitForWgmma<0>();
      if (isLeader) releaseStage(shared, state.stage);
      state.advance();
#pragma unroll
      for (int block = 0; block < P::rowBlocks; ++block)
#pragma unroll
        for (int at = 0; at < tile.n / 2; ++at) {
          asm volatile("" : "+f"(kTileAccumulators[block][at]));  // behind the wait
          accumulators[block][at] = fmaf(factor[block][rowInFragment(at % 8) / 8], kTileAccumulators[block][at], accumulators[block][at]);
        }
    }
  }
#endif
};

}  // namespace weft::sm90
