// The dummy family alone: which kernels it takes, in which configurations.
#include "passes/configure/CostModel.h"
#include "tests/unit/families/dummy/DummyFamily.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::dummyFamily;

namespace {

const Device &device() { return findDevice("h200"); }

}  // namespace

TEST_CASE("a dense copy has every layout and two numbers of threads") {
  const Expected<ConfigurationSpace, Reason> answer =
      dummyFamily.space(samples::identityKernel({{'b', 3}, {'j', 5}}, "bj"), device());
  REQUIRE(answer);
  CHECK(answer->tuples.size() == 2);
  CHECK(answer->knobs.size() == 2);
}

TEST_CASE("other bodies are rejected") {
  const Expected<ConfigurationSpace, Reason> answer =
      dummyFamily.space(samples::reluKernel({{'b', 3}, {'j', 5}}, "bj"), device());
  CHECK(!answer);
  CHECK(reasonOf(answer) == "the body is not one copy");
}
