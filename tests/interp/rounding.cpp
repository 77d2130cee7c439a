// Rounding to f16 and bf16 against bit patterns from the formats' definitions (IEEE 754-2008 binary16; bfloat16 is the
// upper half of binary32).
#include "ir/interpreter/Rounding.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

using weft::DType;
using weft::reference::roundTo;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The upper half of binary32, rounded to nearest even by integer arithmetic on the bits.
float truncatedBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

/// The value of a binary16 bit pattern.
double halfValue(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

}  // namespace

TEST_CASE("every finite half is a fixed point, and midpoints go to the even neighbour") {
  for (int bits = 0; bits < 0x7BFF; ++bits) {
    const double lower = halfValue(bits), upper = halfValue(bits + 1);
    REQUIRE(roundTo(DType::f16, lower) == lower);
    REQUIRE(roundTo(DType::f16, (lower + upper) / 2) == (bits % 2 ? upper : lower));
    REQUIRE(roundTo(DType::f16, -(lower * 0.51 + upper * 0.49)) == -lower);
  }
}

TEST_CASE("half overflows to infinity from the midpoint beyond 65504 on") {
  CHECK(roundTo(DType::f16, 65519.99) == 65504);
  CHECK(roundTo(DType::f16, 65520) == infinity);
  CHECK(roundTo(DType::f16, -1e6) == -infinity);
  CHECK(roundTo(DType::f16, -infinity) == -infinity);
  CHECK(std::isnan(roundTo(DType::f16, std::nan(""))));
  CHECK(std::signbit(roundTo(DType::f16, -0.0)));
}

TEST_CASE("bfloat16 agrees with integer rounding of binary32 bits") {
  for (uint32_t bits = 0x00000001; bits < 0x7F7F8000; bits += 0x1357) {
    const float value = std::bit_cast<float>(bits);
    REQUIRE(roundTo(DType::bf16, value) == truncatedBfloat16(value));
    REQUIRE(roundTo(DType::bf16, -value) == -truncatedBfloat16(value));
  }
  CHECK(roundTo(DType::bf16, std::bit_cast<float>(0x7F7F8000u)) == infinity);
}

TEST_CASE("integers, booleans and wide floats") {
  CHECK(roundTo(DType::f64, 0.1) == 0.1);
  CHECK(roundTo(DType::f32, 0.1) == double(0.1f));
  CHECK(roundTo(DType::i32, -2.9) == -2);
  CHECK(roundTo(DType::i1, 7) == 1);
  CHECK(roundTo(DType::i1, 0) == 0);
}
