// Products of an operand that is scaled by one factor for each of its rows and run of whole
// k-tiles, as the last step of a decomposed softmax does ("Recomposing Softmax Layers",
// section 3.2): the accumulators of a k-tile's products are scaled in its place, and nothing is
// rewritten in shared memory. So TMA brings both operands as they are, and an element of the result
// costs one more GEMM in fp32 for each kTile.
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/sm90_scaled_factors.cuh"

namespace weft::sm90 {

/// As multiplyKTiles of other contractions; all stages have been handed back when it returns.
template <typename A, typename B, GemmProblem gemm, Tile tile, typename Factors>
__device__ __forceinline__ void multiplyScaledTile(Accumulators<gemm, tile> &accumulators,
                                                   Shared<gemm, tile> shared,
                                                   PipelineState<tile.stages> &state,
                                                   Factors &factors, int firstRow, bool isLeader) {
  using P = TileConfig<gemm, tile>;
  static_assert(tile.splitK == 1, "kTiles of a whole tile");
#pragma unroll
  for (int block = 0; block < P::rowBlocks; ++block)
#pragma unroll
    for (int at = 0; at < tile.n / 2; ++at) accumulators[block][at] = 0.0f;
#pragma unroll 1
  for (int kTile = 0; kTile < P::kTiles; ++kTile) {
    wait(shared.full(state.stage), state.parity);
    const unsigned long long a =
        describeOperand(shared.a(state.stage) + firstRow * rowBytes, subtileBytes);
    const unsigned long long b = describeOperand(shared.b(state.stage), subtileBytes);
    Accumulators<gemm, tile> kTileAccumulators;
    multiplyKTile<A, B, !gemm.a.isAlongK(), !gemm.b.isAlongK()>(kTileAccumulators, a, b, false);
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
        accumulators[block][at] = fmaf(factor[block][rowInFragment(at % 8) / 8],
                                       kTileAccumulators[block][at], accumulators[block][at]);
      }
  }
}

}  // namespace weft::sm90
