// The steps of a loop over tiles of scores of which masks leave something, for loops that copy some
// steps ahead.
//
// The lanes of a warp ask for the coverage of 32 steps at once, so that empty ones cost next to
// nothing; all of them advance together.
#pragma once

#include "weft/tile_coverage.cuh"
#include "weft/warp.cuh"

namespace weft {

/// Steps `first`, first + stride, .. below `count` whose coverageOf(step) is not empty: a queue of
/// `ahead` of them. `seesAll`: none is empty, and nothing is asked.
template <bool seesAll, int count, int stride, int ahead, typename CoverageOf>
struct SeenSteps {
  static constexpr int lanes = 32;
  const CoverageOf &coverageOf;
  int group;  // the first of 32 steps, whose bits these are:
  unsigned seen = 0, full = 0;
  int queue[ahead];  // twice the step, and whether masks leave all of it

  __device__ __forceinline__ SeenSteps(const CoverageOf &coverageOf, int first)
      : coverageOf(coverageOf), group(first - (seesAll ? stride : lanes * stride)) {
#pragma unroll
    for (int n = 0; n < ahead; ++n) queue[n] = next();
  }
  /// The n-th step from now on; `count` or more where there is none.
  __device__ __forceinline__ int at(int n) const { return queue[n] >> 1; }
  __device__ __forceinline__ int last() const { return at(ahead - 1); }
  __device__ __forceinline__ bool isDone() const { return at(0) >= count; }
  /// Whether masks leave all of the first one.
  __device__ __forceinline__ bool isFull() const { return queue[0] & 1; }
  __device__ __forceinline__ void advance() {
#pragma unroll
    for (int n = 0; n + 1 < ahead; ++n) queue[n] = queue[n + 1];
    queue[ahead - 1] = next();
  }

private:
  __device__ __forceinline__ int next() {
    if constexpr (seesAll) {
      group += stride;
      return 2 * group + 1;
    }
    while (seen == 0) {
      group += lanes * stride;
      if (group >= count) return 2 * count;
      const int own = group + int(threadIdx.x % lanes) * stride;
      const TileCoverage covered = own < count ? coverageOf(own) : TileCoverage::empty;
      seen = ptx::ballot(covered != TileCoverage::empty);
      full = ptx::ballot(covered == TileCoverage::full);
    }
    const int bit = ptx::lowestBit(seen);
    seen ^= 1u << bit;
    return 2 * (group + bit * stride) + int(full >> bit & 1);
  }
};

}  // namespace weft
