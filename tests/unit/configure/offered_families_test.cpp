// What a device offers, by what families say of themselves.
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleRotary.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;

TEST_CASE("the families that turn pairs are those that take a rotary embedding behind a GEMM") {
  const Kernel kernel = rotatedProjection({.b = 2, .j = 128, .g = 4, .p = 64, .i = 256}, DType::f16,
                                          {.isHalved = false});
  const Device &h200 = findDevice("h200");
  for (const Family *family : test::nonEmpty(families())) {
    INFO(family->name);
    CHECK(family->space(kernel, h200).has_value() == family->rotatesPairs);
  }
}

TEST_CASE("a property is offered unless its families are taken away or do not run") {
  for (bool Family::*property :
       {&Family::rotatesPairs, &Family::takesAttention, &Family::takesAttentionBackward}) {
    Device device = findDevice("h200");
    CHECK(offersFamilyWith(property, device));
    for (const Family *family : test::nonEmpty(families()))
      if (family->*property) device.familiesTakenAway.insert(family);
    CHECK_FALSE(offersFamilyWith(property, device));
  }
  CHECK_FALSE(offersFamilyWith(&Family::rotatesPairs, findDevice("a100")));
  CHECK(offersFamilyWith(&Family::takesAttention, findDevice("a100")));
}
