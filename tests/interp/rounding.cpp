// Rounding to f16 and bf16 against bit patterns from the formats' definitions (IEEE 754-2008
// binary16; bfloat16 is the upper half of binary32). The 8-bit floats, and how they are stored,
// against tables that are counted up from zero (OFP8, table 1).
#include "ir/interpreter/Rounding.h"
#include "kernel/reference/StoredElement.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

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

/// The values of the patterns 0 to `last`: steps of the smallest one, which double with every
/// binade from the second normal one on.
std::vector<double> float8Values(int fractionBits, double smallest, int last) {
  std::vector<double> values{0};
  double step = smallest;
  for (int pattern = 1; pattern <= last; ++pattern) {
    const int place = pattern - 1;
    if (place >= 2 << fractionBits && place % (1 << fractionBits) == 0) step *= 2;
    values.push_back(values.back() + step);
  }
  return values;
}

struct Float8 {
  DType type;
  std::vector<double> values;  ///< finite ones that are not negative, by pattern
};
const Float8 float8s[] = {{DType::f8e4m3, float8Values(3, 0x1p-9, 0x7E)},
                          {DType::f8e5m2, float8Values(2, 0x1p-16, 0x7B)}};

double loaded(DType type, int pattern) {
  const auto byte = std::byte(pattern);
  return weft::reference::loadElement(type, &byte);
}
int stored(DType type, double value) {
  std::byte byte{};
  weft::reference::storeElement(type, &byte, value);
  return int(byte);
}

}  // namespace

TEST_CASE("every 8-bit pattern is its value, and the value is stored as the pattern") {
  CHECK(float8s[0].values.back() == 448);
  CHECK(float8s[0].values[8] == 0x1p-6);
  CHECK(float8s[1].values.back() == 57344);
  CHECK(float8s[1].values[4] == 0x1p-14);
  for (const auto &[type, values] : float8s)
    for (int pattern = 0; pattern < 256; ++pattern) {
      const size_t magnitude = size_t(pattern & 0x7F);
      INFO(nameOf(type) << " " << pattern);
      if (magnitude >= values.size()) {  // of E5M2 0x7C is infinity, of E4M3 there is NaN alone
        const bool isInfinity = type == DType::f8e5m2 && magnitude == 0x7C;
        CHECK((isInfinity ? loaded(type, pattern) == (pattern & 0x80 ? -infinity : infinity)
                          : std::isnan(loaded(type, pattern))));
        if (isInfinity) CHECK(stored(type, loaded(type, pattern)) == pattern);
        continue;
      }
      const double value = pattern & 0x80 ? -values[magnitude] : values[magnitude];
      CHECK(loaded(type, pattern) == value);
      CHECK(stored(type, value) == pattern);
      CHECK(roundTo(type, value) == value);
      CHECK(std::signbit(roundTo(type, value)) == (pattern >= 0x80));
    }
  for (const auto &[type, values] : float8s) CHECK(stored(type, std::nan("")) == 0x7F);
}

TEST_CASE("8-bit floats are rounded to the nearest, ties to the even pattern, and saturate") {
  for (const auto &[type, values] : float8s) {
    for (size_t pattern = 0; pattern + 1 < values.size(); ++pattern) {
      const double lower = values[pattern], upper = values[pattern + 1],
                   middle = (lower + upper) / 2;
      REQUIRE(roundTo(type, middle) == (pattern % 2 ? upper : lower));
      REQUIRE(roundTo(type, std::nextafter(middle, 0)) == lower);
      REQUIRE(roundTo(type, -std::nextafter(middle, infinity)) == -upper);
    }
    const double largest = values.back();
    for (const double beyond : {largest * 1.01, largest * 1.0625, largest * 2, 1e300}) {
      CHECK(roundTo(type, beyond) == largest);
      CHECK(roundTo(type, -beyond) == -largest);
    }
    CHECK(std::isnan(roundTo(type, std::nan(""))));
  }
  CHECK(roundTo(DType::f8e4m3, infinity) == 448);
  CHECK(roundTo(DType::f8e4m3, -infinity) == -448);
  CHECK(roundTo(DType::f8e5m2, infinity) == infinity);
  CHECK(roundTo(DType::f8e5m2, -infinity) == -infinity);
}

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
