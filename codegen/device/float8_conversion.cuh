// Conversions of the 8-bit formats of OFP8: by instructions from sm_89 on, by bits before.
#pragma once

#include "weft/float8_bits.cuh"
#include "weft/ptx.cuh"

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

/// Nearest E4M3, ties to even; what is beyond the largest one, infinities too, becomes that one,
/// NaN stays NaN.
__device__ __forceinline__ unsigned char floatToE4m3(float value) {
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return (unsigned char)pair;
#else
  return weft::bits::toFloat8<3, 7>(value, 448.0f);
#endif
}

/// Nearest E5M2, ties to even; finite values beyond the largest one become that one, infinities and
/// NaN stay what they are.
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
