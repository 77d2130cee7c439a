// The emulation's own conversions: elements are stored as their formats say, and the stand-ins for
// PTX conversions agree with the interpreter's rounding on values around every kind of boundary.
#include "ir/interpreter/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "tests/emulate/host/emulate_keywords.h"

// What the emulation defines before: __device__ and the stand-ins for PTX.
#include "weft/float8_bits.cuh"
#include "weft/float8_conversion.cuh"

#include <catch2/catch.hpp>

using weft::DType;

TEST_CASE("every half survives store, load and the device's widening") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const unsigned short pattern = (unsigned short)bits;
    const double value =
        weft::reference::loadElement(DType::f16, reinterpret_cast<const std::byte *>(&pattern));
    const float widened = weft::ptx::halfToFloat(pattern);
    if (std::isnan(value)) {
      REQUIRE(std::isnan(widened));
      continue;
    }
    REQUIRE(double(widened) == value);
    unsigned short stored = 0;
    weft::reference::storeElement(DType::f16, reinterpret_cast<std::byte *>(&stored), value);
    REQUIRE(stored == pattern);
    REQUIRE(weft::ptx::floatToHalf(widened) == pattern);
  }
}

TEST_CASE("narrowing rounds as the interpreter does") {
  for (unsigned bits = 0; bits < 0x7F800000; bits += 0x0FFF) {
    const float value = std::bit_cast<float>(bits | (bits & 1 ? 0x80000000u : 0));
    const unsigned short half = weft::ptx::floatToHalf(value),
                         narrow = weft::ptx::floatToBfloat16(value);
    REQUIRE(double(weft::ptx::halfToFloat(half)) == weft::reference::roundTo(DType::f16, value));
    REQUIRE(double(weft::ptx::floatFromBits(unsigned(narrow) << 16)) ==
            weft::reference::roundTo(DType::bf16, value));
  }
}

TEST_CASE(
    "every 8-bit float survives store, load and the device's widening, with instructions and by "
    "bits") {
  for (int bits = 0; bits < 256; ++bits)
    for (const DType type : {DType::f8e4m3, DType::f8e5m2}) {
      const auto pattern = std::byte(bits);
      const bool isE4m3 = type == DType::f8e4m3;
      const double value = weft::reference::loadElement(type, &pattern);
      const float widened = isE4m3 ? weft::ptx::e4m3ToFloat((unsigned char)bits)
                                   : weft::ptx::halfToFloat((unsigned short)(bits << 8));
      INFO(nameOf(type) << " " << bits);
      if (std::isnan(value)) {
        CHECK(std::isnan(widened));
        if (isE4m3) CHECK(std::isnan(weft::bits::fromE4m3((unsigned char)bits)));
        continue;
      }
      CHECK(double(widened) == value);
      if (isE4m3)
        CHECK(std::bit_cast<unsigned>(weft::bits::fromE4m3((unsigned char)bits)) ==
              std::bit_cast<unsigned>(widened));
      CHECK(int(isE4m3 ? weft::ptx::floatToE4m3(widened) : weft::ptx::floatToE5m2(widened)) ==
            bits);
    }
}

TEST_CASE("narrowing to 8 bits rounds as the interpreter does, with instructions and by bits") {
  const auto compare = [](float value) {
    const auto check = [&](DType type, unsigned char got) {
      const auto pattern = std::byte(got);
      const double stored = weft::reference::loadElement(type, &pattern),
                   rounded = weft::reference::roundTo(type, value);
      REQUIRE((std::isnan(value)
                   ? std::isnan(stored)
                   : stored == rounded && std::signbit(stored) == std::signbit(rounded)));
    };
    check(DType::f8e4m3, weft::ptx::floatToE4m3(value));
    check(DType::f8e5m2, weft::ptx::floatToE5m2(value));
    check(DType::f8e4m3, weft::bits::toFloat8<3, 7>(value, 448.0f));
    if (!std::isinf(value))
      check(DType::f8e5m2,
            weft::bits::toFloat8<2, 15>(value, 57344.0f));  // its caller sees to these
  };
  for (unsigned bits = 0; bits < 0x80000000;
       bits += 0x3FFF)  // ties of both formats lie at multiples of 2^19
    for (const unsigned near :
         {bits, (bits & ~0x7FFFFu), (bits & ~0x7FFFFu) + 1, (bits & ~0x7FFFFu) - 1})
      for (const unsigned sign : {0u, 0x80000000u})
        compare(std::bit_cast<float>((near & 0x7FFFFFFF) | sign));
  for (int unit = 0; unit < 64; ++unit)  // subnormals, and what lies between them
    for (const float smallest : {0x1p-9f, 0x1p-16f}) compare(smallest * float(unit) / 8);
}

TEST_CASE("NaN stays NaN") {
  const float notANumber = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(weft::ptx::halfToFloat(weft::ptx::floatToHalf(notANumber))));
  CHECK(
      std::isnan(weft::ptx::floatFromBits(unsigned(weft::ptx::floatToBfloat16(notANumber)) << 16)));
  CHECK(weft::ptx::floatToE4m3(notANumber) == 0x7F);
  CHECK(weft::ptx::floatToE5m2(notANumber) == 0x7F);
  CHECK(std::isnan(weft::ptx::maximum(notANumber, 1)));
  CHECK(std::isnan(weft::ptx::maximum(1, notANumber)));
}
