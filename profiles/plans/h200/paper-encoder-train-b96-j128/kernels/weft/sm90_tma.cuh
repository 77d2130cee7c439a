// Tiles that TMA moves between memory and shared memory: coordinates in elements, innermost first.
// Parts of a box that are out of bounds load as zero, and are not stored. A load tells a barrier of
// its bytes; stores of a thread end in groups.
#pragma once

#include "weft/sm90_shared.cuh"
#include "weft/tensor_map.cuh"

namespace weft::sm90 {

__device__ __forceinline__ void prefetchMap(const TensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
__device__ __forceinline__ void loadTile(SharedAddress to, const TensorMap *map,
                                         SharedAddress barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void loadTile(SharedAddress to, const TensorMap *map,
                                         SharedAddress barrier, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z)
      : "memory");
}
/// The same into the same place of every block of the cluster whose bit is set in `blocks`, and to
/// the barrier that each has there.
__device__ __forceinline__ void loadTileMulticast(SharedAddress to, const TensorMap *map,
                                                  SharedAddress barrier, unsigned short blocks,
                                                  int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
      "cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void loadTileMulticast(SharedAddress to, const TensorMap *map,
                                                  SharedAddress barrier, unsigned short blocks,
                                                  int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
      "cluster [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(to),
      "l"(map), "r"(barrier), "h"(blocks), "r"(x), "r"(y), "r"(z)
      : "memory");
}
/// Stores drop rows out of bounds exactly, the innermost dimension at 16 bytes only.
__device__ __forceinline__ void storeTile(const TensorMap *map, SharedAddress from, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y)
      : "memory");
}
__device__ __forceinline__ void storeTile(const TensorMap *map, SharedAddress from, int x, int y,
                                          int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
      "r"(from), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ __forceinline__ void commitStores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until all but the newest `pending` groups of this thread's stores have read their shared
/// memory.
template <int pending>
__device__ __forceinline__ void waitForStoresToRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
template <int pending>
__device__ __forceinline__ void waitForStores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}
/// Orders this thread's accesses to shared memory before later ones of TMA and of wgmma.
__device__ __forceinline__ void fenceForAsync() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- The same of three to five dimensions, by an array of coordinates ----

template <int dimensions>
__device__ __forceinline__ void loadBox(SharedAddress to, const TensorMap *map,
                                        SharedAddress barrier, const int (&at)[5]) {
  static_assert(dimensions >= 3 && dimensions <= 5);
  if constexpr (dimensions == 3) loadTile(to, map, barrier, at[0], at[1], at[2]);
  else if constexpr (dimensions == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%3, %4, %5, %6, %7}], [%2];" ::"r"(to),
        "l"(map), "r"(barrier), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
}
template <int dimensions>
__device__ __forceinline__ void storeBox(const TensorMap *map, SharedAddress from,
                                         const int (&at)[5]) {
  static_assert(dimensions >= 3 && dimensions <= 5);
  if constexpr (dimensions == 3) storeTile(map, from, at[0], at[1], at[2]);
  else if constexpr (dimensions == 4)
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
            map),
        "r"(from), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::
            "l"(map),
        "r"(from), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
}

}  // namespace weft::sm90
