// What the lanes of a warp tell each other, beside the shuffles that every kernel may use
// (ptx.cuh). All 32 lanes take part.
#pragma once

namespace weft::ptx {

/// All lanes of the warp have come so far, and see what the others wrote before.
__device__ __forceinline__ void warpBarrier() { __syncwarp(); }
/// What a lane of the warp holds.
__device__ __forceinline__ unsigned fromLane(unsigned value, int lane) {
  return __shfl_sync(~0u, value, lane);
}
/// The lanes of the warp for which the condition holds, one bit each; all 32 lanes take part.
__device__ __forceinline__ unsigned ballot(bool condition) { return __ballot_sync(~0u, condition); }
__device__ __forceinline__ int countBits(unsigned bits) { return __popc(bits); }
/// The position of the lowest bit that is set.
__device__ __forceinline__ int lowestBit(unsigned bits) { return __ffs(bits) - 1; }

}  // namespace weft::ptx
