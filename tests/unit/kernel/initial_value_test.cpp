// The text of initial values, in both directions.
#include "kernel/InitialValue.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <limits>
#include <vector>

using namespace weft;
using weft::test::nonEmpty;

TEST_CASE("every initial value is read back as it was, to the bit") {
  const std::vector<InitialValue> values = {
      InitialValue::zeros(),
      InitialValue::ones(),
      InitialValue::normal(0.02),
      InitialValue::normal(1.0 / 3),
      InitialValue::normal(std::numeric_limits<double>::denorm_min()),
      InitialValue::normal(std::numeric_limits<double>::max())};
  for (const InitialValue &value : nonEmpty(values)) CHECK(parseInitialValue(text(value)) == value);
  CHECK(text(InitialValue::normal(0.02)) == "normal(0.02)");
}

TEST_CASE("what is no initial value is not read as one") {
  for (const char *wrong :
       nonEmpty(std::vector{"", "zero", "Zeros", "zeros ", "normal", "normal()", "normal(0)",
                            "normal(-0.02)", "normal(nan)", "normal(inf)", "normal(1e999)",
                            "normal(0.02", "normal(0.02))", "normal( 0.02)", "normal(0x1p-5)"})) {
    INFO(wrong);
    CHECK_FALSE(parseInitialValue(wrong));
  }
}
