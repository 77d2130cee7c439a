// The steps of a loop over tiles of scores of which masks leave something, for loops that copy some
// steps ahead.
//
// The lanes of a warp ask for the coverage of 32 steps at once, so that empty ones cost next to
// nothing; all of them advance together. Few registers: loops around are short of them.
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
  int first;
  unsigned seen = 0;  // of the 32 steps around the last of the queue, those behind it
  int queue[ahead];   // numbers of steps, from 0 on

  __device__ __forceinline__ SeenSteps(const CoverageOf &coverageOf, int first)
      : coverageOf(coverageOf), first(first) {
    int last = -1;
#pragma unroll
    for (int n = 0; n < ahead; ++n) queue[n] = last = behind(last);
  }
  /// The n-th step from now on; `count` or more where there is none.
  __device__ __forceinline__ int at(int n) const { return first + queue[n] * stride; }
  __device__ __forceinline__ int last() const { return at(ahead - 1); }
  __device__ __forceinline__ bool isDone() const { return at(0) >= count; }
  __device__ __forceinline__ void advance() {
    const int next = behind(queue[ahead - 1]);
#pragma unroll
    for (int n = 0; n + 1 < ahead; ++n) queue[n] = queue[n + 1];
    queue[ahead - 1] = next;
  }

private:
  __device__ __forceinline__ int behind(int number) {
    if constexpr (seesAll) {
      return number + 1;
    } else {
      int group = number & -lanes;
      while (seen == 0) {
        group += lanes;
        if (first + group * stride >= count) return group;
        const int own = first + (group + int(threadIdx.x % lanes)) * stride;
        seen = ptx::ballot(own < count && coverageOf(own) != TileCoverage::empty);
      }
      const int bit = ptx::lowestBit(seen);
      seen ^= 1u << bit;
      return group + bit;
    }
  }
};

}  // namespace weft
