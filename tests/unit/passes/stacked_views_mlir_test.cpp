// A stacked result is views without copies: in the best plan of every variant of every preset, no
// slice and no concatenation runs a kernel, those of global positions among them.
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Device.h"
#include "passes/Passes.h"
#include "passes/select/Selection.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

using namespace weft;
using namespace weft::test;

namespace {

/// Ops of the chosen kernels that only cut or join: as a view, and as a kernel that copies.
struct Parts {
  int views = 0;
  std::vector<std::string> copies;
};

Parts partsOf(const select::Problem &problem, const select::SelectionResult &plan) {
  Parts parts;
  for (const select::Step &step : plan.steps) {
    if (step.candidate < 0) continue;
    const select::Candidate &candidate = problem.candidates[size_t(step.candidate)];
    for (const BodyOp &op : candidate.kernel.body) {
      if (op.kind != OpKind::slice && op.kind != OpKind::concat) continue;
      if (step.configuration.knobs.is<ViewKnobs>()) ++parts.views;
      else parts.copies.push_back(candidate.name);
    }
  }
  return parts;
}

}  // namespace

TEST_CASE("no plan of a preset copies the parts of a stacked result") {
  const std::unique_ptr<CostModel> model = analyticCostModel(findDevice("h200"));
  for (const models::Preset &known : nonEmpty(models::presets())) {
    const auto loaded = preset(known.name, {{"b", 8}, {"j", 512}});
    const bool isCut = !loaded->graph().getBody().front().getOps<SliceOp>().empty();
    VariantOptions options;
    options.attention = AttentionChoice::unfused;
    for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, options))) {
      GraphOp graph = graphOf(*variant.module);
      const select::Selection selection = select::select(
          toProblem(graph, variant.rewrites, proposeFusions(graph, FuseOptions{})), *model, {});
      const Parts parts = partsOf(selection.problem(), selection.best());
      INFO(known.name << ": " << selection.problem().name);
      CHECK(parts.copies.empty());
      CHECK((parts.views > 0) == (isCut || !variant.rewrites.empty()));
    }
  }
}
