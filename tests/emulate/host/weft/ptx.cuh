// The functions of codegen/device/ptx.cuh in portable C++, with the results that the PTX
// instructions give.
#pragma once

#include "emulate_keywords.h"

#include <bit>
#include <limits>

namespace weft::ptx {

/// cvt.f32.f16
inline float halfToFloat(unsigned short bits) {
  const unsigned magnitude = bits & 0x7FFF;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (magnitude > 0x7C00) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude == 0x7C00) return sign * std::numeric_limits<float>::infinity();
  return sign * (std::bit_cast<float>(magnitude << 13) * 0x1p112f);  // exponents are 112 apart
}

/// cvt.rn.f16.f32: rounds the fraction of the float's own bits, to nearest even.
inline unsigned short floatToHalf(float value) {
  const unsigned bits = std::bit_cast<unsigned>(value), magnitude = bits & 0x7FFFFFFF;
  const unsigned short sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7F800000) return 0x7FFF;
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // from 65520 on
  if (magnitude < 0x38800000)                         // below 2^-14: a multiple of 2^-24
    return sign | (unsigned short)(std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f));
  const unsigned rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return sign | (unsigned short)((rounded >> 13) - (112 << 10));
}

/// cvt.rn.bf16.f32
inline unsigned short floatToBfloat16(float value) {
  const unsigned bits = std::bit_cast<unsigned>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
  return (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline float floatFromBits(unsigned bits) { return std::bit_cast<float>(bits); }

/// max.NaN.f32
inline float maximum(float a, float b) { return std::isnan(a) || a > b ? a : b; }
inline float minimum(float a, float b) { return std::isnan(a) || a < b ? a : b; }
/// div.full.f32
inline float divide(float a, float b) { return a / b; }
/// What ftz makes of a subnormal number.
inline float flushed(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}
/// rcp.approx.ftz.f32
inline float reciprocal(float value) { return flushed(1.0f / flushed(value)); }
/// ex2.approx.ftz.f32
inline float exp2(float value) { return flushed(std::exp2(flushed(value))); }
inline float inverseSquareRoot(float value) { return 1.0f / std::sqrt(value); }
inline float sinPi(float value) { return float(std::sin(3.14159265358979323846 * double(value))); }
inline float cosPi(float value) { return float(std::cos(3.14159265358979323846 * double(value))); }

/// shfl.sync.bfly over all lanes
template <typename T>
T shuffleXor(T value, int mask, const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  return weft::emulate::shuffle(~0u, value, (weft::emulate::currentThread.x % 32) ^ unsigned(mask),
                                file, line);
}

/// ld.relaxed.cta.global: a vector access, aligned as the device demands.
template <int N>
void loadInOrder(unsigned (&words)[N], const void *from) {
  struct alignas(4 * N) Access {
    unsigned words[N];
  };
  const Access access = *static_cast<const Access *>(from);
  for (int n = 0; n < N; ++n) words[n] = access.words[n];
}

inline void loadInOrder(unsigned short &bits, const void *from) {
  std::memcpy(&bits, from, sizeof bits);
}

inline void barrier(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  weft::emulate::barrier(file, line);
}

}  // namespace weft::ptx
