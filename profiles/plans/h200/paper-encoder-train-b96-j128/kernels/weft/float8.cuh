// The 8-bit formats of OFP8 as storage types, and their conversions: by instructions from sm_89 on, by bits before. A separate
// header, so that the text of kernels without them does not depend on it.
#pragma once

#include "weft/types.cuh"

#if !defined(WEFT_EMULATE)
#include "weft/float8_bits.cuh"

namespace weft::ptx {

/// The float with the value of an E4M3 bit pattern; exact.
__device__ __forceinline__ float e4m3ToFloat(unsigned char bits) {
#if __CUDA_ARCH__ >= 890
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)bits));
  return halfToFloat((unsigned short)pair);
#else
  return weft::bits::fromE4m3(bits);
#endif
}

/// Nearest E4M3, ties to even; what is beyond the largest one, infinities too, becomes that one, NaN stays NaN.
__device__ __forceinline__ unsigned char floatToE4m3(float value) {
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return (unsigned char)pair;
#else
  return weft::bits::toFloat8<3, 7>(value, 448.0f);
#endif
}

/// Nearest E5M2, ties to even; finite values beyond the largest one become that one, infinities and NaN stay what they are.
__device__ __forceinline__ unsigned char floatToE5m2(float value) {
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  const unsigned char nearest = (unsigned char)pair;
#else
  const unsigned char nearest = weft::bits::toFloat8<2, 15>(value, 57344.0f);
#endif
  const unsigned bits = __float_as_uint(value);
  return (bits & 0x7FFFFFFF) == 0x7F800000 ? (unsigned char)(bits >> 24 & 0x80 | 0x7C) : nearest;
}

}  // namespace weft::ptx
#endif

namespace weft {

/// Storage only. Values beyond the largest one (448, 57344) are stored as that one; E4M3 has no infinities, those of E5M2 stay.
struct float8e4m3 {
  unsigned char bits;
};
struct float8e5m2 {
  unsigned char bits;
};

__device__ __forceinline__ float widen(float8e4m3 value) { return ptx::e4m3ToFloat(value.bits); }
__device__ __forceinline__ float widen(float8e5m2 value) { return ptx::halfToFloat((unsigned short)(value.bits << 8)); }
template <> __device__ __forceinline__ float8e4m3 narrow<float8e4m3>(float value) { return {ptx::floatToE4m3(value)}; }
template <> __device__ __forceinline__ float8e5m2 narrow<float8e5m2>(float value) { return {ptx::floatToE5m2(value)}; }

}  // namespace weft
