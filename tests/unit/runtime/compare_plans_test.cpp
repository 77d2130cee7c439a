// Which of several timed plans is kept: the fastest, unless an earlier one is within noise of it.
#include "runtime/measure/ComparePlans.h"

#include <catch2/catch.hpp>

#include <stdexcept>

using weft::runtime::firstUnbeaten;

namespace {

/// Rounds whose common drift does not matter: each plan's factor times 1, 1.1, 1.2, ...
std::vector<double> drifting(double factor, double jitter = 0) {
  std::vector<double> samples;
  for (int round = 0; round < 20; ++round)
    samples.push_back(factor * (1 + 0.1 * round) * (1 + (round % 2 == 0 ? jitter : -jitter)));
  return samples;
}

}  // namespace

TEST_CASE("a clear difference decides, whatever the order") {
  CHECK(firstUnbeaten({drifting(1.02), drifting(1.0)}) == 1);
  CHECK(firstUnbeaten({drifting(1.0), drifting(1.02)}) == 0);
  CHECK(firstUnbeaten({drifting(1.3), drifting(1.1), drifting(1.0), drifting(1.2)}) == 2);
}

TEST_CASE("differences within noise keep the first of those within it") {
  CHECK(firstUnbeaten({drifting(1.003), drifting(1.0)}) == 0);
  CHECK(firstUnbeaten({drifting(1.02, 0.05), drifting(1.0, 0.0)}) == 0);
  CHECK(firstUnbeaten({drifting(1.2), drifting(1.004), drifting(1.0)}) == 1);
}

TEST_CASE("plans that were not timed are never kept") {
  CHECK(firstUnbeaten({{}, drifting(1.5), drifting(1.0)}) == 2);
  CHECK(firstUnbeaten({{}, drifting(1.0), {}}) == 1);
  CHECK_THROWS_AS(firstUnbeaten({{}, {}}), std::logic_error);
}
