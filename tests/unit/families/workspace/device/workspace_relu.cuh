// The relu of the family with a workspace, which no other family's kernels include.
#pragma once

#include "weft/math.cuh"
#include "weft/types.cuh"

namespace weft {

/// Element `at`, where there is one, by way of `rounds` places of fp32.
template <int rounds, typename T>
__device__ __forceinline__ void reluThrough(T *to, const T *from, float *places, Offset at,
                                            Offset elements) {
  if (at >= elements) return;
  float value = widen(from[at]);
  for (int round = 0; round < rounds; ++round) {
    places[round * elements + at] = value;
    value = places[round * elements + at];
  }
  to[at] = narrow<T>(relu(value));
}

}  // namespace weft
