// The functions of codegen/device/float8_conversion.cuh on the host, with the results that the
// instructions of sm_89 give.
#pragma once

#include "emulate_keywords.h"

#include "weft/ptx.cuh"

#include <cmath>
#include <limits>

namespace weft::ptx {

/// cvt.rn.f16x2.e4m3x2 and cvt.f32.f16
inline float e4m3ToFloat(unsigned char bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  return sign * (exponent ? float(8 + fraction) * float(1 << exponent) * 0x1p-10f
                          : float(fraction) * 0x1p-9f);
}

/// The pattern, of those up to `last`, whose value is nearest, the even one of two; `last` for what
/// is beyond it.
template <typename Value>
unsigned char nearestFloat8(float value, unsigned char last, Value valueOf) {
  const unsigned char sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(double(value));
  if (std::isnan(value)) return 0x7F;
  unsigned char below = 0, above = last;
  while (above - below > 1) {
    const unsigned char middle = (unsigned char)((below + above) / 2);
    (double(valueOf(middle)) <= magnitude ? below : above) = middle;
  }
  const double toBelow = magnitude - double(valueOf(below)),
               toAbove = double(valueOf(above)) - magnitude;
  const bool takesAbove = toAbove < toBelow || (toAbove == toBelow && above % 2 == 0);
  return sign | (takesAbove ? above : below);
}

/// cvt.rn.satfinite.e4m3x2.f32
inline unsigned char floatToE4m3(float value) { return nearestFloat8(value, 0x7E, e4m3ToFloat); }
/// cvt.rn.satfinite.e5m2x2.f32 but for infinities, which stay
inline unsigned char floatToE5m2(float value) {
  if (std::isinf(value)) return value > 0 ? 0x7C : 0xFC;
  return nearestFloat8(value, 0x7B,
                       [](unsigned char bits) { return halfToFloat((unsigned short)(bits << 8)); });
}

}  // namespace weft::ptx
