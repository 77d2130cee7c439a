// Statistics of measurements and the words said about clocks; no GPU needed.
#include "runtime/measure/Measure.h"
#include "kernel/Error.h"

#include <catch2/catch.hpp>

#include <limits>
#include <stdexcept>
#include <vector>

using namespace weft;
using namespace weft::runtime;

TEST_CASE("percentiles interpolate between neighbours") {
  const std::vector<double> sorted = {1, 2, 3, 4, 5};
  CHECK(percentile(sorted, 0.5) == 3);
  CHECK(percentile(sorted, 0.1) == Approx(1.4));
  CHECK(percentile(sorted, 0) == 1);
  CHECK(percentile(sorted, 1) == 5);
  CHECK_THROWS_AS(percentile({}, 0.5), std::logic_error);
}

TEST_CASE("a measurement is its median with the width of the middle 80%") {
  const Statistics statistics = summarize(std::vector<double>{5, 1, 3, 2, 4});
  CHECK(statistics.median == 3);
  CHECK(statistics.p10 == Approx(1.4));
  CHECK(statistics.p90 == Approx(4.6));
  CHECK(statistics.fastest == 1);
  CHECK(statistics.n == 5);
  CHECK(statistics.spread() == Approx(3.2 / 3));
}

TEST_CASE("values that are not finite are errors, never averaged away") {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(summarize(std::vector<double>{1, nan, 3}), Error);
  CHECK_THROWS_AS(summarize(std::vector<double>{1, infinity}), Error);
  CHECK_THROWS_AS(summarizeRatio(std::vector<double>{1}, std::vector<double>{0}), Error);
  CHECK_THROWS_AS(summarize(std::vector<double>{}), std::logic_error);
}

TEST_CASE("ratios pair the samples of the same round") {
  // Both drift by a factor of two; their ratio does not.
  const Statistics ratio =
      summarizeRatio(std::vector<double>{1, 1.5, 2}, std::vector<double>{2, 3, 4});
  CHECK(ratio.median == 0.5);
  CHECK(ratio.spread() == 0);
  CHECK_THROWS_AS(summarizeRatio(std::vector<double>{1}, std::vector<double>{1, 2}),
                  std::logic_error);
}

TEST_CASE("sets for cold calls touch twice the L2 between two uses") {
  CHECK(setsForColdL2(50, 100) == 5);
  CHECK(setsForColdL2(60, 100) == 5);
  CHECK(setsForColdL2(1000, 100) == 2);
  CHECK(setsForColdL2(0, 100) == std::numeric_limits<int>::max());
}

TEST_CASE("throttling is named, idling is not throttling") {
  CHECK(describeThrottling(0) == "none");
  CHECK(describeThrottling(0x1) == "none");
  CHECK(describeThrottling(0x4 | 0x20) == "power cap, thermal");
}

TEST_CASE("clock readings: median with range, what is missing is left out") {
  CHECK(describe(Protocol{.rounds = 5}) ==
        "cold L2, n=5 rounds of about 2.00 ms, 3 to warm up, interleaved");
  CHECK(describe(Protocol{.rounds = 5, .restSeconds = 20e-3}) ==
        "cold L2, n=5 rounds of about 2.00 ms, 3 to warm up, interleaved, 20.0 ms of rest before "
        "every turn");
  CHECK(describe(summarizeStates({})) == "clocks: not readable");
  CHECK(describe(summarizeStates({GpuState{}})) == "clocks: not readable");
  const auto state = [](int clock, double watts) {
    return GpuState{.smClockMhz = clock,
                    .memoryClockMhz = 3201,
                    .powerWatts = watts,
                    .powerLimitWatts = 700,
                    .temperatureCelsius = 50,
                    .throttleReasons = 0x4};
  };
  CHECK(describe(summarizeStates({state(1980, 400), state(1500, 699.6), state(1755, 650)})) ==
        "SM 1755 (1500-1980) MHz, memory 3201 MHz, 650 W of 700 W, 50 C, throttled: power cap");
}

TEST_CASE("a monitor of a GPU that is not there says so") {
  const GpuMonitor monitor("00000000000000000000000000000000");
  CHECK_FALSE(monitor.problem().empty());
  CHECK_FALSE(monitor.read().smClockMhz.has_value());
}
