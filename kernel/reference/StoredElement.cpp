// IEEE 754 binary16 and the two formats of OFP8 by sign, exponent and fraction; bfloat16 as the
// upper half of binary32.
#include "kernel/reference/StoredElement.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace weft::reference {
namespace {

template <typename T>
void put(std::byte *at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <typename T>
T get(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// 2^exponent, a normal number: std::ldexp costs most of a load.
double powerOfTwo(int exponent) { return std::bit_cast<double>(uint64_t(exponent + 1023) << 52); }

uint16_t halfBits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return 0x7E00;
  if (std::isinf(value)) return sign | 0x7C00;
  if (magnitude < 0x1p-14)
    return sign | uint16_t(magnitude * 0x1p24);  // subnormal: multiples of 2^-24
  const int exponent = std::ilogb(magnitude);
  const uint16_t fraction = uint16_t(std::ldexp(magnitude, 10 - exponent)) & 0x3FF;
  return sign | uint16_t(exponent + 15) << 10 | fraction;
}

double halfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? (1024 + fraction) * powerOfTwo(exponent - 25) : fraction * 0x1p-24);
}

/// An 8-bit format: the rest of the byte is its sign and its exponent, whose smallest normal value
/// is 2^(1 - bias).
struct Float8 {
  int fractionBits, bias;
  uint8_t infinity, notANumber;  ///< of positive sign; equal where there is no infinity
};
constexpr Float8 e4m3Bits{3, 7, 0x7F, 0x7F}, e5m2Bits{2, 15, 0x7C, 0x7F};

uint8_t float8Bits(const Float8 &format, double value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return format.notANumber;
  if (std::isinf(value)) return sign | format.infinity;
  const int exponent =
      magnitude == 0 ? 1 - format.bias : std::max(std::ilogb(magnitude), 1 - format.bias);
  const int units =
      int(std::ldexp(magnitude, format.fractionBits -
                                    exponent));  // the leading bit is there unless it is subnormal
  return sign | uint8_t(((exponent + format.bias - 1) << format.fractionBits) + units);
}

double float8Value(const Float8 &format, uint8_t bits) {
  const int magnitude = bits & 0x7F, fraction = magnitude & ((1 << format.fractionBits) - 1),
            exponent = magnitude >> format.fractionBits;
  const double sign = bits & 0x80 ? -1 : 1;
  if (magnitude == format.infinity && format.infinity != format.notANumber)
    return sign * std::numeric_limits<double>::infinity();
  if (magnitude >= format.infinity) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * fraction * powerOfTwo(1 - format.bias - format.fractionBits);
  return sign * ((1 << format.fractionBits) + fraction) *
         powerOfTwo(exponent - format.bias - format.fractionBits);
}

}  // namespace

void storeElement(DType type, std::byte *at, double value) {
  switch (type) {
    case DType::f64: return put(at, value);
    case DType::f32:
    case DType::tf32: return put(at, float(value));
    case DType::f16: return put(at, halfBits(value));
    case DType::bf16: return put(at, uint16_t(std::bit_cast<uint32_t>(float(value)) >> 16));
    case DType::i32: return put(at, int32_t(value));
    case DType::i1: return put(at, uint8_t(value));
    case DType::f8e4m3: return put(at, float8Bits(e4m3Bits, value));
    case DType::f8e5m2: return put(at, float8Bits(e5m2Bits, value));
  }
}

double loadElement(DType type, const std::byte *at) {
  switch (type) {
    case DType::f64: return get<double>(at);
    case DType::f32:
    case DType::tf32: return get<float>(at);
    case DType::f16: return halfValue(get<uint16_t>(at));
    case DType::bf16: return std::bit_cast<float>(uint32_t(get<uint16_t>(at)) << 16);
    case DType::i32: return get<int32_t>(at);
    case DType::i1: return get<uint8_t>(at);
    case DType::f8e4m3: return float8Value(e4m3Bits, get<uint8_t>(at));
    case DType::f8e5m2: return float8Value(e5m2Bits, get<uint8_t>(at));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace weft::reference
