// Vectors at the end of a row: whole accesses where all elements are inside, else element by
// element, so that rows of any length move as fast as those of whole vectors.
#pragma once

#include "weft/vector.cuh"

namespace weft {

/// Loads `count` neighbouring elements, of more than N the first N; the rest are zero and not read.
/// `from` is aligned to accessBytes<T, N>().
template <int N, typename T>
__device__ __forceinline__ Vec<Compute<T>, N> loadPart(const T *from, int count) {
  if (count >= N) return loadVector<N>(from);
  return loadStrided<N>(from, 1, count);
}

/// Stores the first `count` of N elements, all of them where it is more; `to` is aligned to
/// accessBytes<T, N>().
template <int N, typename T>
__device__ __forceinline__ void storePart(T *to, const Vec<Compute<T>, N> &values, int count) {
  if (count >= N) storeVector<N>(to, values);
  else storeStrided<N>(to, 1, values, count);
}

}  // namespace weft
