// 8-bit floats by arithmetic on bits, for targets without instructions for them (before sm_89).
// Portable, so that host tests run it as it is.
#pragma once

namespace weft::bits {

/// Nearest value of a format of so many fraction bits and this bias, ties to even; `largest` for
/// what is beyond, 0x7F for NaN.
template <int fractionBits, int bias>
__device__ __forceinline__ unsigned char toFloat8(float value, float largest) {
  constexpr int dropped = 23 - fractionBits;
  constexpr unsigned leastNormal = (128 - bias) << 23;  // 2^(1 - bias)
  constexpr float units = __builtin_bit_cast(float, unsigned(126 + bias + fractionBits)
                                                        << 23);  // a subnormal one's in 1
  const unsigned bits = __builtin_bit_cast(unsigned, value), sign = bits >> 24 & 0x80,
                 most = __builtin_bit_cast(unsigned, largest);
  unsigned magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7F;
  magnitude = magnitude < most ? magnitude : most;
  if (magnitude < leastNormal) {
    const float whole = __builtin_bit_cast(float, magnitude) * units +
                        8388608.0f;  // at 2^23 a float has no fraction
    return (unsigned char)(sign | (__builtin_bit_cast(unsigned, whole) & 0x7F));
  }
  const unsigned rounded = magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
  return (unsigned char)(sign | ((rounded >> dropped) - ((127 - bias) << fractionBits)));
}

/// The value of an E4M3 bit pattern; exact.
__device__ __forceinline__ float fromE4m3(unsigned char bits) {
  const unsigned magnitude = bits & 0x7F;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (magnitude == 0x7F) return __builtin_bit_cast(float, 0x7FC00000u);
  return sign * (magnitude < 8 ? float(magnitude) * 0x1p-9f
                               : __builtin_bit_cast(float, (magnitude << 20) + (120u << 23)));
}

}  // namespace weft::bits
