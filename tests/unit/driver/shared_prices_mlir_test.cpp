// Compilations that share prices, and what their decisions found by them, decide what each decides
// alone; plans of one path that share its draft are those that are made alone.
#include "passes/decide/PathPlan.h"
#include "plan/GraphPrediction.h"
#include "plan/Plan.h"
#include "tools/driver/Compilation.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::driver;

namespace {

/// The plan of an attention of one kind whose chunks are chosen, as text; `known`: null where it
/// shares nothing.
std::string planOf(AttentionChoice kind, const std::string &profile,
                   std::vector<SharedPrices> *known) {
  ModelFlags model;
  model.model = "attention";
  model.dims = {"b=8", "h=16", "j=512", "p=64"};
  ChoiceFlags choices;
  choices.attention = kind;
  choices.chunks = 0;
  Compilation compilation(model, choices, {.profile = profile});
  compilation.import();
  if (known) compilation.sharePrices(*known);
  const decision::Decision decided = compilation.decide(compilation.propose(Phase::import));
  CHECK(decided.pricedChunkings.size() > 1);  // or the case shows nothing of chunks
  return toJson(decided.planned.plan).dump(1);
}

}  // namespace

TEST_CASE("decisions that share prices are those that share none") {
  std::vector<SharedPrices> known;
  for (const char *profile : {"none", ""})
    for (const AttentionChoice kind : {AttentionChoice::unfused, AttentionChoice::decomposed}) {
      CAPTURE(profile, spelled(kind));
      CHECK(planOf(kind, profile, &known) == planOf(kind, profile, nullptr));
    }
  CHECK(known.size() == 2);  // one for each profile
}

TEST_CASE("prices at different fills are not shared") {
  std::vector<SharedPrices> known;
  for (const char *lengths : {"mean=0.5", "mean=0.25", "mean=0.5"}) {
    ModelFlags model;
    model.model = "bert-base";
    model.dims = {"b=8", "j=64"};
    model.ragged = "j";
    ChoiceFlags choices;
    choices.lengths = lengths;
    Compilation compilation(model, choices, {.profile = "none"});
    compilation.import();
    const double tokens = compilation.expectedFill()->tokens;
    compilation.sharePrices(known);
    CHECK(compilation.expectedFill()->tokens == tokens);
  }
  CHECK(known.size() == 2);
}

TEST_CASE("plans of one path in several numbers of chunks are those that are made one by one") {
  ModelFlags model;
  model.model = "attention";
  model.dims = {"b=2", "h=6", "j=128", "p=32"};
  ChoiceFlags choices;
  choices.attention = AttentionChoice::unfused;
  Compilation compilation(model, choices, {.profile = "none"});
  compilation.import();
  const decision::Decision decided = compilation.decide(compilation.propose(Phase::import));
  const decision::PlanContext context = compilation.planContext();
  const decision::PathPlans plans(context, decided.best(), decided.path());
  int made = 0, rejected = 0;
  for (const bool isPipelined : {false, true})
    for (const int count : {64, 7, 12, 6, 2, 1, 2}) {
      CAPTURE(isPipelined, count);
      const Expected<PlannedKernels> alone =
                                         decision::planOf(context, decided.best(), decided.path(),
                                                          count, true, isPipelined),
                                     shared = plans.in(count, true, isPipelined);
      REQUIRE(shared.has_value() == alone.has_value());
      if (!alone) {
        ++rejected;
        CHECK(std::string(shared.error().what()) == alone.error().what());
        CHECK(shared.error().kind == alone.error().kind);
        continue;
      }
      ++made;
      const nlohmann::json one = toJson(shared->plan), other = toJson(alone->plan);
      for (const char *member : {"kernels", "tensors"}) CHECK(one.at(member) == other.at(member));
      CHECK(shared->plan.workspaceBytes == alone->plan.workspaceBytes);
      CHECK(shared->plan.predictedSeconds == alone->plan.predictedSeconds);
      const Device &device = context.prices->device();
      CHECK(predictGraph(shared->plan, device).seconds() ==
            predictGraph(alone->plan, device).seconds());
    }
  CHECK(made >= 6);
  CHECK(rejected >= 4);
}
