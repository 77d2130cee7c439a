// In the place of dropout bits (dropout.cuh) where a kernel of attention drops nothing; and
// dropping exponentials by the bits of their fragments.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// Of the eight elements of a fragment.
struct AllKept {
  __device__ __forceinline__ bool at(int) const { return true; }
};
struct NoDropout {
  __device__ __forceinline__ AllKept operator()(int, int, int) const { return {}; }
};

/// Zeroes what is dropped, behind the sums of rows: these have all exponentials. (query, key): of
/// the lane's first one.
template <int count, typename Dropout>
__device__ __forceinline__ void dropExponentials(float (&exponentials)[count],
                                                 const Dropout &dropout, int head, int query,
                                                 int key) {
  if constexpr (!__is_base_of(NoDropout, Dropout)) {
#pragma unroll
    for (int block = 0; block < count / 8; ++block) {
      const auto kept = dropout(head, query, key + block * 16);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (!kept.at(e)) exponentials[block * 8 + e] = 0.0f;
    }
  }
}

}  // namespace weft
