// What weft profile measures of a real layer is all that selection from those measurements is
// offered, whatever the times are.
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/ProfileMeasurements.h"
#include "tools/driver/Compilation.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;
using namespace weft::samples;

namespace {

void checkCovered(const std::string &preset, std::vector<std::string> dims) {
  TargetFlags target;
  target.profile = "none";
  Compilation compilation({.model = preset, .dims = std::move(dims)}, {}, target);
  compilation.import();
  const std::vector<select::Problem> problems =
      compilation.problems(compilation.propose(Phase::import));
  const decision::ProfileSpace space =
      decision::profileSpace(problems, {}, compilation.costModel(), {});
  const Profile profile = completeProfile(space);
  const auto whole = measuredCostModel(findDevice("h200"), profile, "profile p", true);
  const auto thin = measuredCostModel(findDevice("h200"), thinned(profile, 1), "profile p", true);
  for (const select::Problem &problem : nonEmpty(problems)) {
    INFO(preset << ", variant " << problem.name);
    const select::Selection selection = select::select(problem, *whole, {});
    const select::Statistics &statistics = selection.statistics();
    CHECK(statistics.coverageMeasured == 1);
    CHECK(statistics.unmeasuredKernels == 0);
    CHECK(statistics.modelledTransposes == 0);
    CHECK(statistics.notes == std::vector<std::string>{});
    const select::Selection thinSelection = select::select(problem, *thin, {});
    CHECK(thinSelection.best().seconds == Approx(selection.best().seconds).epsilon(1e-9));
    CHECK(thinSelection.statistics().coverageMeasured == 1);
  }
}

}  // namespace

TEST_CASE("a complete profile covers bert-base") { checkCovered("bert-base", {"b=8", "j=512"}); }
TEST_CASE("a complete profile covers one sequence of paper-encoder") {
  checkCovered("paper-encoder", {"b=1", "j=128"});
}
