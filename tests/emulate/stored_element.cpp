// The emulation's own conversions: elements are stored as their formats say, and the stand-ins for PTX conversions agree
// with the interpreter's rounding on values around every kind of boundary.
#include "ir/interpreter/Rounding.h"
#include "kernel/reference/StoredElement.h"
#include "tests/emulate/host/emulate_ptx.h"

#include <catch2/catch.hpp>

using weft::DType;

TEST_CASE("every half survives store, load and the device's widening") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const unsigned short pattern = (unsigned short)bits;
    const double value = weft::reference::loadElement(DType::f16, reinterpret_cast<const std::byte *>(&pattern));
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
    const unsigned short half = weft::ptx::floatToHalf(value), narrow = weft::ptx::floatToBfloat16(value);
    REQUIRE(double(weft::ptx::halfToFloat(half)) == weft::reference::roundTo(DType::f16, value));
    REQUIRE(double(weft::ptx::floatFromBits(unsigned(narrow) << 16)) == weft::reference::roundTo(DType::bf16, value));
  }
}

TEST_CASE("NaN stays NaN") {
  const float notANumber = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(weft::ptx::halfToFloat(weft::ptx::floatToHalf(notANumber))));
  CHECK(std::isnan(weft::ptx::floatFromBits(unsigned(weft::ptx::floatToBfloat16(notANumber)) << 16)));
  CHECK(std::isnan(weft::ptx::maximum(notANumber, 1)));
  CHECK(std::isnan(weft::ptx::maximum(1, notANumber)));
}
