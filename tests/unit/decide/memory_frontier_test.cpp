// The frontier of time and memory: which points stay, that no plan of the limit beats the one that
// is listed for it, and that variants with less to store are on it.
#include "passes/decide/MemoryFrontier.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleProblems.h"

#include <catch2/catch.hpp>

using namespace weft;
using decision::FrontierPoint;
using decision::undominated;
using weft::test::nonEmpty;

namespace {

const samples::HashedPrices prices(7);

FrontierPoint point(double seconds, int64_t bytes, const std::string &name = "") {
  return {.seconds = seconds, .workspaceBytes = bytes, .variant = name};
}

std::string namesOf(const std::vector<FrontierPoint> &points) {
  std::string names;
  for (const FrontierPoint &one : points) names += one.variant;
  return names;
}

/// y = relu(x + x): the sum is stored, or not.
decision::Problem problem() {
  decision::Problem problem{
      .variants = {},
      .context = {.prices = &prices, .model = "sample", .dims = {}, .dtype = DType::f16},
      .everyVariant = [] { return std::vector<select::Problem>(); }};
  for (const bool fuses : {false, true}) {
    samples::ProblemBuilder builder;
    const int x = builder.argument("x");
    const int sum = builder.op("sum", {x, x});
    builder.result(builder.op("y", {sum}));
    builder.everyOpAlone();
    if (fuses) builder.candidate({0, 1});
    builder.problem.name = fuses ? "fuses" : "alone";
    builder.problem.rewrites = {
        {.kind = Rewrite::Kind::recompute, .subject = builder.problem.name}};
    for (const auto &[index, name] : {std::pair(x, "x"), std::pair(sum + 1, "y")})
      builder.problem.tensors[size_t(index)].pinned = rowMajor(2);
    problem.variants.push_back({.problem = builder.problem, .notes = {}});
  }
  return problem;
}

}  // namespace

TEST_CASE("points that another beats in both are left out, the others by growing memory") {
  CHECK(undominated({}).empty());
  CHECK(namesOf(undominated({point(3, 10, "c"), point(1, 30, "a"), point(2, 20, "b"),
                             point(2.5, 25, "x"), point(4, 40, "y")})) == "cba");
  // Equal in one: the better in the other; equal in both: the first.
  CHECK(namesOf(undominated({point(2, 10, "x"), point(1, 10, "a")})) == "a");
  CHECK(namesOf(undominated({point(1, 20, "x"), point(1, 10, "a")})) == "a");
  CHECK(namesOf(undominated({point(1, 10, "a"), point(1, 10, "x")})) == "a");
}

TEST_CASE("the frontier holds what a limit of its memory chooses") {
  const decision::Problem asked = problem();
  decision::Options options;
  options.chunks = 0;
  const auto points = memoryPoints(asked, options);
  REQUIRE(points);
  CHECK(points->size() >= 2);
  const std::vector<FrontierPoint> frontier = undominated(*points);
  const FrontierPoint &least = nonEmpty(frontier).front();
  CHECK(least.index == 1);
  CHECK(least.variant == "fuses");
  CHECK(least.rewrites.front().subject == "fuses");
  for (const FrontierPoint &one : frontier) {
    const auto chosen = decide(asked, {.chunks = 0,
                                       .maxMemory = std::max<int64_t>(1, one.workspaceBytes),
                                       .maxMemoryText = "limit"});
    REQUIRE(chosen);
    CHECK(chosen->planned.plan.predictedSeconds == Approx(one.seconds));
    CHECK(chosen->planned.plan.workspaceBytes <= one.workspaceBytes);
  }
}
