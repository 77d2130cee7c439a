// Vectors of neighbouring elements: what one thread takes in one step. A packed vector holds stored
// elements and moves in 16-byte accesses; a Vec holds them in compute type.
#pragma once

#include "weft/types.cuh"

namespace weft {

/// N values in registers.
template <typename T, int N>
struct Vec {
  T at[N];
};

/// Bytes of the widest access that moves N elements of T: at most 16.
template <typename T, int N>
constexpr int accessBytes() {
  return sizeof(T) * N < 16 ? int(sizeof(T) * N) : 16;
}

/// N stored elements, aligned so that they move in whole accesses.
template <typename T, int N>
struct alignas(accessBytes<T, N>()) Packed {
  T at[N];
};

/// Loads N neighbouring elements; `from` is aligned to accessBytes<T, N>().
template <int N, typename T>
__device__ __forceinline__ Packed<T, N> loadPacked(const T *from) {
  return *reinterpret_cast<const Packed<T, N> *>(from);
}

/// loadPacked that stays behind every earlier and before every later load of its kind
/// (ptx::loadInOrder).
template <int N, typename T>
__device__ __forceinline__ Packed<T, N> loadPackedInOrder(const T *from) {
  constexpr int bytes = accessBytes<T, N>(), accesses = int(sizeof(T)) * N / bytes;
  static_assert(bytes >= 4, "narrower accesses have no order");
  struct Words {
    unsigned at[accesses][bytes / 4];
  } words;
#pragma unroll
  for (int n = 0; n < accesses; ++n)
    ptx::loadInOrder(words.at[n], reinterpret_cast<const char *>(from) + n * bytes);
  return __builtin_bit_cast(Packed<T, N>, words);
}

/// Packed elements in compute type.
template <typename T, int N>
__device__ __forceinline__ Vec<Compute<T>, N> unpack(const Packed<T, N> &packed) {
  Vec<Compute<T>, N> values;
#pragma unroll
  for (int e = 0; e < N; ++e) values.at[e] = widen(packed.at[e]);
  return values;
}

/// loadPacked and unpack in one.
template <int N, typename T>
__device__ __forceinline__ Vec<Compute<T>, N> loadVector(const T *from) {
  return unpack(loadPacked<N>(from));
}

/// Loads `count` <= N elements that lie `stride` elements apart; the rest are zero and not read.
template <int N, typename T, typename Index>
__device__ __forceinline__ Vec<Compute<T>, N> loadStrided(const T *from, Index stride,
                                                          int count = N) {
  Vec<Compute<T>, N> values;
#pragma unroll
  for (int e = 0; e < N; ++e) {
    values.at[e] = 0;
    if (e < count) values.at[e] = widen(from[e * stride]);
  }
  return values;
}

/// Loads one element.
template <typename T>
__device__ __forceinline__ Compute<T> loadOne(const T *from) {
  return widen(*from);
}

/// Stores N packed elements; `to` is aligned to accessBytes<T, N>().
template <int N, typename T>
__device__ __forceinline__ void storePacked(T *to, const Packed<T, N> &packed) {
  *reinterpret_cast<Packed<T, N> *>(to) = packed;
}

/// Stores N neighbouring elements; `to` is aligned to accessBytes<T, N>().
template <int N, typename T>
__device__ __forceinline__ void storeVector(T *to, const Vec<Compute<T>, N> &values) {
  Packed<T, N> packed;
#pragma unroll
  for (int e = 0; e < N; ++e) packed.at[e] = narrow<T>(values.at[e]);
  *reinterpret_cast<Packed<T, N> *>(to) = packed;
}

/// Stores the first `count` <= N elements `stride` elements apart.
template <int N, typename T, typename Index>
__device__ __forceinline__ void storeStrided(T *to, Index stride, const Vec<Compute<T>, N> &values,
                                             int count = N) {
#pragma unroll
  for (int e = 0; e < N; ++e)
    if (e < count) to[e * stride] = narrow<T>(values.at[e]);
}

/// Stores one element.
template <typename T>
__device__ __forceinline__ void storeOne(T *to, Compute<T> value) {
  *to = narrow<T>(value);
}

}  // namespace weft
