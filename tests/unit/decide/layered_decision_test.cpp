// Where layers are cut: by what is lost, then by what crosses, then by the distance from their
// border.
#include "passes/decide/LayeredDecision.h"
#include "passes/decide/Recomputations.h"
#include "tests/unit/samples/SampleProblems.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <functional>

using namespace weft;
using decision::chooseCut;
using decision::Decision;

namespace {

const samples::HashedPrices hashedPrices(7);

/// y = relu(x + x), whose sum is a temporary.
decision::Problem layer() {
  samples::ProblemBuilder builder;
  const int x = builder.argument("x");
  builder.result(builder.op("y", {builder.op("sum", {x, x})}));
  builder.everyOpAlone();
  decision::Problem problem{
      .variants = {},
      .context = {.prices = &hashedPrices, .model = "sample", .dims = {}, .dtype = DType::f16},
      .everyVariant = [] { return std::vector<select::Problem>(); }};
  problem.variants.push_back({.problem = builder.problem, .notes = {}});
  return problem;
}

/// One layer as the only part of a whole that is the same.
struct OneLayer {
  decision::Options ofPart, ofWhole;
  std::vector<Decision> taken = {};
  int joins = 0;

  Expected<Decision> decide() {
    return decision::decideLayers(
        {.parts = 1,
         .ask = [&](size_t) { return decision::Question{.problem = layer(), .options = ofPart}; },
         .namesOf = {},
         .askRecomputing = {},
         .take = [&](size_t, Decision one) { taken.push_back(std::move(one)); },
         .join =
             [&] {
               ++joins;
               return decision::JoinedQuestion{
                   .problem = layer(),
                   .options = ofWhole,
                   .parts = {
                       {.decision = &taken.front(), .ops = {0, 1}, .placedText = std::identity()}}};
             }});
  }
};

const decision::Options oneByte = {.maxMemory = 1, .maxMemoryText = "1"};

}  // namespace

TEST_CASE("a part without a decision is the result's error, and nothing is joined") {
  OneLayer layer{.ofPart = oneByte, .ofWhole = {}};
  const Expected<Decision> decision = layer.decide();
  REQUIRE_FALSE(decision);
  CHECK(decision.error().kind == ErrorKind::unsupported);
  CHECK_THAT(decision.error().what(), Catch::Contains("--max-memory 1"));
  CHECK(layer.taken.empty());
  CHECK(layer.joins == 0);
}

TEST_CASE("a whole beyond the limit of memory is an error with the fewest bytes found") {
  OneLayer layer{.ofPart = {}, .ofWhole = {}};
  const Expected<Decision> decision = layer.decide();
  REQUIRE(decision);
  const int64_t bytes = decision->planned.plan.workspaceBytes;
  REQUIRE(bytes > 1);
  OneLayer limited{.ofPart = {}, .ofWhole = oneByte};
  const Expected<Decision> none = limited.decide();
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::unsupported);
  CHECK_THAT(none.error().what(),
             Catch::Contains("--max-memory 1: the smallest plan of the layers that was found") &&
                 Catch::EndsWith(fmt::format("nearest is --max-memory {}", bytes)));
}

TEST_CASE("of up to three chains every set is computed again, of more those with the first ones") {
  using Sets = std::vector<std::vector<std::string>>;
  CHECK(decision::recomputedSets({}).empty());
  CHECK(decision::recomputedSets({{"a", "b"}, {"c"}}) == Sets{{"a", "b"}, {"a", "b", "c"}, {"c"}});
  CHECK(decision::recomputedSets({{"a"}, {"b"}, {"c"}}).size() == 7);
  CHECK(decision::recomputedSets({{"a"}, {"b"}, {"c"}, {"d"}}) == Sets{{"a"},
                                                                       {"a", "b"},
                                                                       {"a", "b", "c"},
                                                                       {"a", "b", "c", "d"},
                                                                       {"a", "c"},
                                                                       {"a", "d"},
                                                                       {"b"},
                                                                       {"c"},
                                                                       {"d"}});
}

TEST_CASE("a cut is chosen of at most three layers") {
  CHECK(decision::layersToCompare(2) == 2);
  CHECK(decision::layersToCompare(12) == 3);
}

TEST_CASE("the cut that loses the fewest fused candidates is chosen, whatever crosses it") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 10, .lost = 2},
                   {.tensors = 2, .bytes = 90, .lost = 0},
                   {.tensors = 1, .bytes = 10, .lost = 1}},
                  1) == 1);
}

TEST_CASE("of cuts that lose as many candidates the one with the fewest bytes is chosen") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 30, .lost = 1},
                   {.tensors = 1, .bytes = 10, .lost = 1},
                   {.tensors = 1, .bytes = 20, .lost = 1}},
                  1) == 1);
}

TEST_CASE("of equal cuts the nearest to the border is chosen") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 30, .lost = 1},
                   {.tensors = 1, .bytes = 10, .lost = 0},
                   {.tensors = 1, .bytes = 10, .lost = 0}},
                  1) == 1);
}

TEST_CASE("a place that two tensors more cross than the fewest is no cut") {
  CHECK(chooseCut({{.tensors = 1, .bytes = 30, .lost = 3},
                   {.tensors = 3, .bytes = 10, .lost = 0},
                   {.tensors = 2, .bytes = 40, .lost = 2}},
                  1) == 2);
}
