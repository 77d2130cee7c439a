// The configuration that a kernel takes at other extents: its own where that is legal, else one of
// its family.
#include "kernel/Family.h"
#include "passes/configure/Families.h"
#include "passes/decide/NearestConfiguration.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

using namespace weft;
using weft::test::nonEmpty;

namespace {

Kernel gemm(int64_t m, int64_t n, int64_t k) {
  return samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in");
}

/// Every configuration of row-major operands.
std::vector<Configuration> configurationsOf(const Kernel &kernel) {
  LayoutConstraints rows;
  rows.inputs.assign(kernel.inputs.size(), rowMajor(2));
  rows.outputs.assign(kernel.outputs.size(), rowMajor(2));
  std::vector<Configuration> all;
  forEachConfiguration(kernel, findDevice("h200"), rows, [&](const Configuration &one) {
    all.push_back(one);
    return true;
  });
  return all;
}

}  // namespace

TEST_CASE("a configuration that is legal is nearest to itself") {
  const Kernel kernel = gemm(1024, 1024, 1024);
  for (const Configuration &own : nonEmpty(configurationsOf(kernel))) {
    const auto nearest = decision::nearestConfiguration(kernel, own, findDevice("h200"));
    REQUIRE(nearest);
    INFO(describe(kernel, own.knobs) << " and " << describe(kernel, nearest->knobs));
    CHECK(nearest->knobs == own.knobs);
  }
}

TEST_CASE("at other extents the family stays, and the layouts") {
  const Kernel small = gemm(24, 40, 64);
  const std::vector<Configuration> legal = configurationsOf(small);
  for (const Configuration &own : nonEmpty(configurationsOf(gemm(4096, 4096, 1024)))) {
    const auto isOfFamily = [&](const Configuration &one) {
      return one.knobs.family() == own.knobs.family();
    };
    if (std::ranges::none_of(legal, isOfFamily)) continue;
    const auto nearest = decision::nearestConfiguration(small, own, findDevice("h200"));
    REQUIRE(nearest);
    INFO(describe(small, own.knobs) << " and " << describe(small, nearest->knobs));
    CHECK(isOfFamily(*nearest));
    CHECK(nearest->inputs == own.inputs);
    CHECK(std::ranges::find(legal, *nearest) != legal.end());
  }
}

TEST_CASE("of a kernel that no family takes in these layouts nothing is nearest") {
  const Kernel kernel = gemm(64, 64, 64);
  Configuration own = configurationsOf(kernel).front();
  own.inputs[0] = Layout{.order = {0, 1}, .strides = {}};
  own.outputs[0] = Layout{.order = {0}};
  CHECK_FALSE(decision::nearestConfiguration(kernel, own, findDevice("h200")));
}
