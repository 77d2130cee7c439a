// Early starts are of whole plans: where the mean launch is short, all kernels, else none.
#include "codegen/families/view/ViewKnobs.h"
#include "plan/EarlyStarts.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;

namespace {

Plan planOf(const std::vector<double> &seconds) {
  Plan plan;
  for (const double one : seconds) {
    PlanKernel &kernel = plan.kernels.emplace_back();
    if (one == 0) kernel.family = viewFamily;
    kernel.seconds = one;
  }
  return plan;
}

bool startEarly(Plan plan, EarlyStarts which) {
  chooseEarlyStarts(plan, which);
  const bool first = plan.kernels.front().startsEarly;
  for (const PlanKernel &kernel : nonEmpty(plan.kernels)) CHECK(kernel.startsEarly == first);
  return first;
}

}  // namespace

TEST_CASE("kernels of plans with a short mean launch start early, whatever single ones take") {
  CHECK(startEarly(planOf({2e-6, 7e-6, 3e-6}), EarlyStarts::shortPlans));
  CHECK_FALSE(startEarly(planOf({2e-6, 12e-6, 3e-6}), EarlyStarts::shortPlans));
  CHECK(startEarly(planOf({2e-6, 12e-6, 3e-6}), EarlyStarts::all));
  CHECK_FALSE(startEarly(planOf({2e-6}), EarlyStarts::none));
}

TEST_CASE("views launch nothing, and count for nothing") {
  CHECK_FALSE(startEarly(planOf({0, 0, 0, 6e-6}), EarlyStarts::shortPlans));
  CHECK(startEarly(planOf({0, 4e-6}), EarlyStarts::shortPlans));
}

TEST_CASE("no kernel of a plan with launches at once starts early") {
  Plan plan = planOf({2e-6, 2e-6});
  plan.concurrent = true;
  CHECK_FALSE(startEarly(plan, EarlyStarts::shortPlans));
  CHECK_FALSE(startEarly(plan, EarlyStarts::all));
}
