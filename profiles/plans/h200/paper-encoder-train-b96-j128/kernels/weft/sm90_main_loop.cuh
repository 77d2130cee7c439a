// The main loop of contractions on sm_90a, one text for all of them: whole tiles (sm90_gemm.cuh),
// runs of k-tiles (sm90_stream_k.cuh), one consumer (sm90_single_consumer.cuh) and rows that are
// scaled (sm90_scaled.cuh, which multiplies k-tiles one by one). A k-tile is 128 bytes of every row
// of A and B in a stage of shared memory; products are accumulated in fp32.
//
// Invariant: a stage is handed back when the products that read it have ended, and the products of
// one k-tile run while the next one is waited for.
#pragma once

#include "weft/sm90_barrier.cuh"
#include "weft/sm90_pipeline.cuh"
#include "weft/wgmma.cuh"

namespace weft::sm90 {

/// Products of a step of k: 32 bytes of every row of A and B. The kernel includes the header of its
/// types (wgmma_*.cuh).
template <typename A, typename B, bool outerA, bool outerB, int accumulators>
__device__ __forceinline__ void multiplyElements(float (&d)[accumulators], unsigned long long a,
                                                 unsigned long long b, bool accumulates) {
  wgmma<outerA, outerB>(static_cast<A *>(nullptr), static_cast<B *>(nullptr), d, a, b, accumulates);
}

/// Starts the products of one k-tile, from where its operands lie: 64 rows of A for each block of
/// accumulators. Added to what the accumulators hold, or in its place.
template <typename A, typename B, bool outerA, bool outerB, int rowBlocks, int accumulators>
__device__ __forceinline__ void multiplyKTile(float (&d)[rowBlocks][accumulators],
                                              unsigned long long describedA,
                                              unsigned long long describedB, bool accumulates) {
  constexpr int stepA = outerA ? 16 * rowBytes : 32, stepB = outerB ? 16 * rowBytes : 32;
  fenceWgmma();
#pragma unroll
  for (int step = 0; step < rowBytes / 32; ++step)
#pragma unroll
    for (int block = 0; block < rowBlocks; ++block)
      multiplyElements<A, B, outerA, outerB>(
          d[block], describedA + (block * subtileBytes + step * stepA >> 4),
          describedB + (step * stepB >> 4), accumulates || step > 0);
  commitWgmma();
}

/// Multiplies so many k-tiles, one at least. `stages` says where they lie, a(stage) and b(stage),
/// which barrier they fill, full(stage), and hands them back, release(stage), which the leader
/// calls. The products of the last one may still run when it returns; its stage is the result and
/// is not handed back.
template <typename A, typename B, bool outerA, bool outerB, int rowBlocks, int accumulators,
          int count, typename Stages>
__device__ __forceinline__ int multiplyKTiles(float (&d)[rowBlocks][accumulators],
                                              const Stages &stages, PipelineState<count> &state,
                                              int kTiles, bool isLeader) {
  int previous = -1;
#pragma unroll 1
  for (int kTile = 0; kTile < kTiles; ++kTile) {
    wait(stages.full(state.stage), state.parity);
    const unsigned long long a = describeOperand(stages.a(state.stage), subtileBytes);
    const unsigned long long b = describeOperand(stages.b(state.stage), subtileBytes);
    multiplyKTile<A, B, outerA, outerB>(d, a, b, kTile > 0);
    waitForWgmma<1>();
    if (previous >= 0 && isLeader) stages.release(previous);
    previous = state.stage;
    state.advance();
  }
  return previous;
}

}  // namespace weft::sm90
