// Boxes of three to five dimensions that TMA moves; coordinates in elements, innermost first.
#pragma once

#include "weft/sm90.cuh"

namespace weft::sm90 {

template <int dimensions> __device__ __forceinline__ void loadBox(SharedAddress to, const TensorMap *map, SharedAddress barrier, const int (&at)[5]) {
  static_assert(dimensions >= 3 && dimensions <= 5);
  if constexpr (dimensions == 3) loadTile(to, map, barrier, at[0], at[1], at[2]);
  else if constexpr (dimensions == 4)
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
                 ::"r"(to), "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
                 ::"r"(to), "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]) : "memory");
}
template <int dimensions> __device__ __forceinline__ void storeBox(const TensorMap *map, SharedAddress from, const int (&at)[5]) {
  static_assert(dimensions >= 3 && dimensions <= 5);
  if constexpr (dimensions == 3) storeTile(map, from, at[0], at[1], at[2]);
  else if constexpr (dimensions == 4)
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];"
                 ::"l"(map), "r"(from), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]) : "memory");
}

}  // namespace weft::sm90
