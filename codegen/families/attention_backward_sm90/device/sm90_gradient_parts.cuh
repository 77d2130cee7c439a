// Parts of a tile's gradients of keys and values, which blocks that share the keys make for some
// heads of queries each: they lie in device memory as accumulators lie in threads, and whoever
// brings the last one adds all up in order, so that the same bits come out every time.
//
// A part of a warpgroup: four floats of a thread together, those of its threads behind them.
#pragma once

#include "weft/grid_memory.cuh"
#include "weft/sm90_pipeline.cuh"
#include "weft/sm90_shared.cuh"
#include "weft/types.cuh"

namespace weft::sm90 {

template <int floats>
__device__ __forceinline__ void storePart(float *part, const float (&sums)[floats], int thread) {
#pragma unroll
  for (int four = 0; four < floats / 4; ++four)
    asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(
                     part + (four * warpgroup + thread) * 4),
                 "f"(sums[four * 4]), "f"(sums[four * 4 + 1]), "f"(sums[four * 4 + 2]),
                 "f"(sums[four * 4 + 3])
                 : "memory");
}

/// Adds a part to sums; so many loads are under way at once as registers are sure to be free for.
template <int floats>
__device__ __forceinline__ void addPart(float (&sums)[floats], const float *part, int thread) {
  constexpr int most = 8, fours = floats / 4;
#pragma unroll
  for (int first = 0; first < fours; first += most) {
    float values[most][4];
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (first + i < fours)
        ptx::loadFromGrid(values[i], part + ((first + i) * warpgroup + thread) * 4);
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (first + i < fours) {
#pragma unroll
        for (int f = 0; f < 4; ++f) sums[(first + i) * 4 + f] += values[i][f];
      }
  }
}

}  // namespace weft::sm90
