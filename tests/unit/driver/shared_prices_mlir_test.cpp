// Compilations that share prices, and what their decisions found by them, decide what each decides
// alone.
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
