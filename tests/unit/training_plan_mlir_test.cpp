// The plan of a whole model's training step, forward, backward and update, computes what its graph does.
#include "tests/unit/PlanResults.h"
#include "tools/driver/Planning.h"

using namespace weft;
using namespace weft::driver;

TEST_CASE("the plan of a training step with its optimizer computes what the graph does") {
  ModelFlags model;
  model.model = "masked-token";
  model.train = true;
  model.optimizer = "adamw";
  model.dtype = "f32";
  model.dims = {"b=2", "j=4", "h=2", "p=4", "i=8", "u=12", "v=16"};
  Compilation compilation(model, {}, {.profile = "none"});
  compilation.import();
  const Selected selected = compilation.select(compilation.propose(Phase::import));
  const PlannedKernels planned = planOf(compilation, selected.best(), selected.path(), 1);
  REQUIRE_NOTHROW(runtime::verify(planned.plan, "plan.json"));
  CHECK(planned.kernels.size() < selected.best().selection.problem().ops.size());
  test::checkResults(compilation, planned, false);
  test::checkResults(compilation, planned, true);
}
