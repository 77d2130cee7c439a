// The phase that decides: one plan of several variants, errors as results, and the choice by
// measuring behind a callback.
#include "passes/decide/Decide.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleProblems.h"

#include <catch2/catch.hpp>

using namespace weft;
using decision::Decision;
using decision::Options;
using decision::Problem;
using weft::test::nonEmpty;

namespace {

const samples::HashedPrices prices(7);

/// Two variants: y = relu(x + x) alone, and the same with the sum and the relu in one kernel, too.
Problem twoVariants() {
  Problem problem{
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
    for (const auto &[index, name] : {std::pair(x, "x"), std::pair(sum + 1, "y")})
      builder.problem.tensors[size_t(index)].pinned = rowMajor(2);
    problem.variants.push_back({.problem = builder.problem, .notes = {"a note"}});
  }
  return problem;
}

/// HashedPrices in whose place the sum and the relu in one kernel have an estimate with a margin.
class WithMargin : public CostModel {
public:
  explicit WithMargin(double mean) : mean(mean) {}
  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    Cost cost = prices.cost(kernel, configuration);
    if (kernel.body.size() < 2) return cost;
    cost.seconds = mean * (1 + margin), cost.margin = margin;
    return cost;
  }
  const Device &device() const override { return prices.device(); }
  PriceSource source() const override { return prices.source(); }
  std::string identity() const override { return prices.identity(); }
  static constexpr double margin = 0.3;

private:
  double mean;
};

}  // namespace

TEST_CASE("the decision is the fastest variant, and its plan is built of its path") {
  const Problem problem = twoVariants();
  const auto decision = decide(problem, Options());
  REQUIRE(decision);
  REQUIRE(decision->variants.size() == 2);
  CHECK(decision->best().name == "fuses");
  CHECK(decision->best().index == 1);
  const Plan &plan = decision->planned.plan;
  CHECK(plan.variant == "fuses");
  CHECK(plan.model == "sample");
  CHECK(plan.kernels.size() == decision->path().steps.size());
  CHECK(plan.predictedSeconds == Approx(decision->path().seconds));
  CHECK(plan.lowerBoundSeconds == decision->lowerBound);
  CHECK(plan.lowerBoundSeconds > 0);
  CHECK(std::ranges::count(plan.notes, "a note", &PlanNote::text) == 1);
  CHECK(secondsOf(*decision, decision->best()) == plan.predictedSeconds);
}

TEST_CASE("the decided plan says which kernels start early, and no plan is built without") {
  const Problem problem = twoVariants();
  for (const auto &[which, early] :
       {std::pair(EarlyStarts::none, false), {EarlyStarts::all, true}}) {
    const auto decision = decide(problem, {.earlyStarts = which});
    REQUIRE(decision);
    for (const PlanKernel &kernel : nonEmpty(decision->planned.plan.kernels))
      CHECK(kernel.startsEarly == early);
  }
}

TEST_CASE("what nothing can honour is an error as a result, and bad input is thrown") {
  Problem problem = twoVariants();
  CHECK(decide(problem, {.maxMemory = 1, .maxMemoryText = "1"})->best().name == "fuses");
  problem.variants.pop_back();  // now the sum is stored
  const auto tooSmall = decide(problem, {.maxMemory = 1, .maxMemoryText = "1"});
  REQUIRE_FALSE(tooSmall);
  CHECK(tooSmall.error().kind == ErrorKind::unsupported);
  CHECK_THROWS_AS(decide(problem, {.pins = {{.tensor = "z", .layout = {{"j", "i"}}}}}), Error);
}

TEST_CASE("a pin that forbids the fused kernel costs what the decision says") {
  const Problem problem = twoVariants();
  const double free = decide(problem, Options())->planned.plan.predictedSeconds;
  const auto decision = decide(problem, {.pins = {{.tensor = "sum", .layout = {{"j", "i"}}}}});
  REQUIRE(decision);
  const Plan &plan = decision->planned.plan;
  REQUIRE(decision->pins.size() == 1);
  CHECK(decision->pins[0].seconds == Approx(plan.predictedSeconds - free));
  CHECK(std::ranges::count(plan.tensors, std::string("sum"), &PlanTensor::logical) == 1);
}

TEST_CASE("a pin names padded rows by their pitch") {
  const select::Tensor tensor{.name = "x", .axes = {{"j", 12}, {"u", 1001}}};
  const Layout dense = decision::pinnedLayout({.tensor = "x", .layout = {{"j", "u"}}}, tensor);
  const Layout rows = decision::pinnedLayout({.tensor = "x", .layout = {{"j", "u"}, 1024}}, tensor);
  CHECK(dense == rowMajor(2));
  CHECK(stridesOf(rows, {12, 1001}) == std::vector<int64_t>{1024, 1});
  const std::vector<std::string> axes = {"j", "u"};
  CHECK(print(namedLayout(rows, axes, {12, 1001})) == "j,u:1024");
  CHECK(print(namedLayout(dense, axes, {12, 1001})) == "j,u");
  for (const NamedLayout &other :
       {NamedLayout{{"j", "u"}, 1001}, {{"j", "u"}, 1040}, {{"u", "j"}, 1024}})
    CHECK_THROWS_AS(decision::pinnedLayout({.tensor = "x", .layout = other}, tensor), Error);
}

TEST_CASE("what the plan takes without pins is asked once where it is remembered") {
  const Problem problem = twoVariants();
  std::optional<decision::WithoutPins> known;
  int stored = 0;
  Options options{.pins = {{.tensor = "sum", .layout = {{"i", "j"}}}}};
  options.recall = [&] { return known; };
  options.remember = [&](const decision::WithoutPins &found) { known = found, ++stored; };
  const auto first = decide(problem, options), second = decide(problem, options);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(stored == 1);
  CHECK(known->times.size() == 2);
  CHECK(first->pins[0].seconds == second->pins[0].seconds);
  CHECK(first->planned.plan == second->planned.plan);
}

TEST_CASE("the plan that measuring keeps is the decision's, with what was measured of it") {
  const Problem problem = twoVariants();
  std::vector<decision::PlanToMeasure> measured;
  const decision::Measure measure = [&](std::vector<decision::PlanToMeasure> plans) {
    measured = plans;
    decision::MeasuredPlans result{.times = {}, .kept = 1};
    for (size_t index = 0; index < plans.size(); ++index)
      result.times.push_back({.measurement = PlanMeasurement{.seconds = 2e-6, .gpu = "a GPU"}});
    return result;
  };
  const auto decision = decide(problem, {.plansToMeasure = 3}, measure);
  REQUIRE(decision);
  REQUIRE(measured.size() >= 2);
  CHECK(measured.size() <= 3);
  REQUIRE(decision->timed.size() == measured.size());
  for (size_t index = 0; index < nonEmpty(decision->timed).size(); ++index)
    CHECK(decision->timed[index].chosen == (index == 1));
  const Plan &plan = decision->planned.plan, &kept = measured[1].planned.plan;
  CHECK(plan.variant == kept.variant);
  CHECK(plan.predictedSeconds == kept.predictedSeconds);
  REQUIRE(plan.measurement);
  CHECK(plan.measurement->gpu == "a GPU");
  CHECK(plan.measurement->ratio == Approx(2e-6 / kept.predictedSeconds));
}

TEST_CASE("among the plans to measure an estimate competes at its optimistic end") {
  Problem problem = twoVariants();
  problem.variants.erase(problem.variants.begin());  // one variant, which has both
  const double alone = decide(twoVariants(), {.alternatives = 1})->variants[1].path().seconds;
  std::vector<decision::PlanToMeasure> measured;
  const decision::Measure measure = [&](std::vector<decision::PlanToMeasure> plans) {
    measured = plans;
    decision::MeasuredPlans result{.times = {}, .kept = plans.size() - 1};
    result.times.resize(plans.size());
    return result;
  };
  const auto kernels = [&](size_t plan) { return measured[plan].planned.plan.kernels.size(); };
  // Above what the two kernels take with the margin; below it without, above it, too.
  for (const double mean : {0.9 * alone, 1.4 * alone, 2 * alone}) {
    const WithMargin prices(mean);
    problem.context.prices = &prices;
    measured.clear();
    const auto decision = decide(problem, {.plansToMeasure = 2}, measure);
    REQUIRE(decision);
    REQUIRE(measured.size() == 2);
    INFO(mean / alone);
    CHECK(kernels(0) == 2);
    const bool competes = (1 - WithMargin::margin) * mean < alone;
    CHECK((kernels(1) == 1) == competes);
    // What is kept has the price at which it takes part everywhere else.
    if (competes) CHECK(decision->planned.plan.predictedSeconds == Approx(mean * 1.3));
    REQUIRE(decision->timed.size() == 2);
    if (competes) CHECK(decision->timed[1].optimistic < decision->timed[1].predictedGraph);
  }
}
