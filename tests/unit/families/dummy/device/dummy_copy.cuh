// The copy of the dummy family, which no other family's kernels include.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// Element `at`, where there is one.
template <typename T>
__device__ __forceinline__ void copyElement(T *to, const T *from, Offset at, Offset elements) {
  if (at < elements) to[at] = from[at];
}

}  // namespace weft
