// The mathematics of iteration spaces: every verdict of canFuse, its blocking axes, and its laws
// over all small spaces.
#include "ir/IterationSpace.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;

namespace {

constexpr int b = 0, j = 1, i = 2, u = 3, k = 4;

/// Every pair of disjoint sets over three axes.
std::vector<AxisSets> allSpaces() {
  std::vector<AxisSets> spaces;
  for (int code = 0; code < 27; ++code) {
    AxisSets space;
    for (int axis = 0, rest = code; axis < 3; ++axis, rest /= 3) {
      if (rest % 3 == 1) space.independent.insert(axis);
      if (rest % 3 == 2) space.reduced.insert(axis);
    }
    spaces.push_back(space);
  }
  return spaces;
}

}  // namespace

TEST_CASE("equal spaces share their loops") {
  const FusionVerdict verdict = canFuse({{b, j, i}, {}}, {{b, j, i}, {}});
  CHECK(verdict.fusability == Fusability::equal);
  CHECK(verdict.blockingAxes.empty());
  CHECK(canFuse({{b, j}, {i}}, {{b, j}, {i}}).fusability == Fusability::equal);
}

TEST_CASE("a map before or after a reduction differs by one reduction") {
  const AxisSets norm{{b, j}, {i}};
  CHECK(canFuse({{b, j, i}, {}}, norm).fusability == Fusability::oneReduction);
  CHECK(canFuse({{b, j}, {}}, norm).fusability == Fusability::oneReduction);
  CHECK(canFuse({{b, j}, {}}, norm).blockingAxes.empty());
}

TEST_CASE("reductions over different axes are named") {
  const FusionVerdict verdict = canFuse({{j}, {i}}, {{i}, {j}});
  CHECK(verdict.fusability == Fusability::none);
  CHECK(verdict.reason == "reduction-axis-mismatch");
  CHECK(verdict.blockingAxes == std::vector<int>{j, i});
}

TEST_CASE("shared outer axes allow partial fusion only") {
  const FusionVerdict maps = canFuse({{b, j, i}, {}}, {{b, j, u}, {}});
  CHECK(maps.fusability == Fusability::partial);
  CHECK(maps.blockingAxes == std::vector<int>{i, u});
  const FusionVerdict reductions = canFuse({{b, j}, {i}}, {{b, j}, {k}});
  CHECK(reductions.fusability == Fusability::partial);
  CHECK(reductions.blockingAxes == std::vector<int>{i, k});
}

TEST_CASE("a map that lacks an outer axis of the reduction cannot run in its loop") {
  const FusionVerdict verdict = canFuse({{i}, {}}, {{b, j}, {i}});
  CHECK(verdict.fusability == Fusability::none);
  CHECK(verdict.blockingAxes == std::vector<int>{b, j});
}

TEST_CASE("laws of canFuse and unite over all pairs of spaces on three axes") {
  for (const AxisSets &a : nonEmpty(allSpaces()))
    for (const AxisSets &c : nonEmpty(allSpaces())) {
      const FusionVerdict verdict = canFuse(a, c);
      CHECK(verdict == canFuse(c, a));
      CHECK((verdict.fusability == Fusability::equal) == (a == c));
      // Whole fusion names no blocking axis; anything less names at least one.
      const bool whole =
          verdict.fusability == Fusability::equal || verdict.fusability == Fusability::oneReduction;
      CHECK(verdict.blockingAxes.empty() == whole);
      const AxisSets united = unite(a, c);
      CHECK(united == unite(c, a));
      CHECK(unite(united, a) == united);
      for (int axis : united.independent)  // may be empty: all are reduced
        CHECK(united.reduced.count(axis) == 0);
    }
}

TEST_CASE("spaces print as in emitted headers") {
  const IterationSpace space{.independent = {{"b", 8, {{0, 0}}}, {"j", 512, {{0, 1}}}},
                             .reduced = {{"i", 1024, {{0, 2}}}}};
  CHECK(print(space) == "b=8 j=512 | i=1024 (reduced)");
  CHECK(print(IterationSpace{.independent = {{"b", 8, {{0, 0}}}}, .reduced = {}}) == "b=8");
  CHECK(print(IterationSpace{.independent = {}, .reduced = {{"b", 8, {{0, 0}}}}}) ==
        "| b=8 (reduced)");
}
