// Storage types of tensors. Arithmetic is always fp32: a value is converted when it is loaded and
// rounded to nearest even when it is stored. Self-contained, so that NVRTC needs no CUDA include
// path.
#pragma once

#include "weft/ptx.cuh"

namespace weft {

/// IEEE binary16, storage only.
struct half {
  unsigned short bits;
};

/// The upper 16 bits of a binary32, storage only.
struct bfloat16 {
  unsigned short bits;
};

/// The type in which a stored element is computed with: float for floating point, int for indices
/// and flags.
template <typename T>
struct ComputeType {
  using type = float;
};
template <>
struct ComputeType<int> {
  using type = int;
};
template <>
struct ComputeType<unsigned char> {
  using type = int;
};
template <typename T>
using Compute = typename ComputeType<T>::type;

/// Stored element to compute type; exact.
__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(half value) { return ptx::halfToFloat(value.bits); }
__device__ __forceinline__ float widen(bfloat16 value) {
  return ptx::floatFromBits(unsigned(value.bits) << 16);
}
__device__ __forceinline__ int widen(int value) { return value; }
__device__ __forceinline__ int widen(unsigned char value) { return value; }

/// Compute type to stored element, rounding to nearest even.
template <typename T>
__device__ __forceinline__ T narrow(Compute<T> value);
template <>
__device__ __forceinline__ float narrow<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ half narrow<half>(float value) {
  return {ptx::floatToHalf(value)};
}
template <>
__device__ __forceinline__ bfloat16 narrow<bfloat16>(float value) {
  return {ptx::floatToBfloat16(value)};
}
template <>
__device__ __forceinline__ int narrow<int>(int value) {
  return value;
}
template <>
__device__ __forceinline__ unsigned char narrow<unsigned char>(int value) {
  return value != 0;
}

/// Element offset into a tensor of 2^31 elements or more.
using Offset = long long;

/// Whether an index lies in [0, extent), and the nearest one that does: what gathers read where it
/// does not.
__device__ __forceinline__ bool isIndex(int index, int extent) {
  return unsigned(index) < unsigned(extent);
}
__device__ __forceinline__ int clampedIndex(int index, int extent) {
  return index < 0 ? 0 : index < extent ? index : extent - 1;
}

/// The smaller and the larger of two counts.
__device__ __forceinline__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ constexpr int larger(int a, int b) { return a > b ? a : b; }

/// What has no value.
constexpr float notANumber = __builtin_bit_cast(float, 0x7FC00000u);

/// Excluded from softmax; what masks write.
constexpr float negativeInfinity = __builtin_bit_cast(float, 0xFF800000u);

}  // namespace weft
