// The frontier of time and memory: which points stay, that no plan of the limit beats the one that
// is listed for it, that variants with less to store are on it, that selection under falling limits
// finds what paths without a limit lack, and that every search ends, whatever the limit.
#include "passes/decide/MemoryFrontier.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleProblems.h"

#include <catch2/catch.hpp>

#include <set>

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
decision::Problem problem(bool mayFuse = true) {
  decision::Problem problem{
      .variants = {},
      .context = {.prices = &prices, .model = "sample", .dims = {}, .dtype = DType::f16},
      .everyVariant = [] { return std::vector<select::Problem>(); }};
  for (const bool fuses : {false, true}) {
    if (fuses && !mayFuse) break;
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

namespace {

/// A kernel of several ops takes more than they do one by one: time is given for memory.
class DearFusion : public samples::HashedPrices {
public:
  DearFusion() : HashedPrices(11) {}
  Cost cost(const Kernel &kernel, const Configuration &) const override {
    Cost cost;
    cost.seconds = 1e-6 * double(kernel.body.size() * kernel.body.size());
    return cost;
  }
};
const DearFusion dearFusion;

/// y = (relu(x) + relu(x)) + (relu(x) + relu(x)), of one variant: what is added is stored, or
/// computed by the kernel of the sum.
decision::Problem sumOfFour(int64_t extent) {
  decision::Problem problem{
      .variants = {},
      .context = {.prices = &dearFusion, .model = "sample", .dims = {}, .dtype = DType::f16},
      .everyVariant = [] { return std::vector<select::Problem>(); }};
  samples::ProblemBuilder builder({{'j', 4}, {'i', extent}});
  const int x = builder.argument("x"), a = builder.op("a", {x}), b = builder.op("b", {x}),
            ab = builder.op("ab", {a, b}), c = builder.op("c", {x}), d = builder.op("d", {x}),
            cd = builder.op("cd", {c, d}), sum = builder.op("sum", {ab, cd});
  builder.result(sum);
  builder.everyOpAlone();
  for (const std::vector<int> &ops :
       {std::vector<int>{0, 1, 2}, {3, 4, 5}, {3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}})
    builder.candidate(ops);
  for (const int index : {x, sum}) builder.problem.tensors[size_t(index)].pinned = rowMajor(2);
  builder.problem.name = "sum";
  problem.variants.push_back({.problem = builder.problem, .notes = {}});
  return problem;
}

}  // namespace

TEST_CASE("limits that fall find plans that paths without a limit lack") {
  const int64_t extent = GENERATE(32, 8);  // buffers as large as tensors, and aligned to more
  const decision::Problem asked = sumOfFour(extent);
  decision::Options options;
  options.chunks = 0;
  options.alternatives = 1;  // the best path alone
  const auto points = memoryPoints(asked, options);
  REQUIRE(points);
  const std::vector<FrontierPoint> frontier = undominated(*points);
  REQUIRE(frontier.size() >= 3);
  size_t fitting = 0;
  std::set<int64_t> limits;
  for (const FrontierPoint &one : frontier)
    for (const int64_t more : {-129, -1, 0, 1})
      limits.insert(std::max<int64_t>(1, one.workspaceBytes + more));
  for (const int64_t limit : limits) {
    options.maxMemory = limit;
    options.maxMemoryText = std::to_string(limit);
    const auto chosen = decide(asked, options);
    while (fitting < frontier.size() && frontier[fitting].workspaceBytes <= limit) ++fitting;
    CHECK(chosen.has_value() == (fitting > 0));
    if (!chosen || fitting == 0) continue;
    CHECK(chosen->planned.plan.workspaceBytes <= limit);
    CHECK(chosen->planned.plan.predictedSeconds == Approx(frontier[fitting - 1].seconds));
  }
}

TEST_CASE("a search within any limit ends, and says what the smallest plan takes") {
  for (const int64_t limit : {-1, 0, 1, 7, 255}) {
    const decision::Options options = {
        .chunks = 0, .maxMemory = limit, .maxMemoryText = std::to_string(limit)};
    // One kernel of all ops stores nothing.
    CHECK(decide(sumOfFour(32), options).has_value() == (limit >= 0));
    const auto chosen = decide(problem(false), options);
    REQUIRE_FALSE(chosen);
    CHECK(chosen.error().kind == ErrorKind::unsupported);
    CHECK_THAT(chosen.error().what(), Catch::Contains("the smallest found"));
  }
}
