// One decision for each layout; see LayoutPredictions.h.
#include "passes/decide/LayoutPredictions.h"

#include "plan/PlanFigures.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace weft::decision {
namespace {

/// The layouts of a tensor in a solved selection.
std::vector<NamedLayout> layoutsOf(const select::Selection &selection, const std::string &name) {
  const std::vector<select::Tensor> &tensors = selection.problem().tensors;
  const auto tensor = std::ranges::find(tensors, name, &select::Tensor::name);
  std::vector<std::string> axes;
  for (const Axis &axis : tensor->axes) axes.push_back(axis.name);
  std::vector<NamedLayout> layouts;
  for (const Layout &layout : selection.layouts(int(tensor - tensors.begin())))
    layouts.push_back(namedLayout(layout, axes, tensor->extents()));
  return layouts;
}

/// These options with `tensor` in `layout` in place of what pins it, if anything does.
Options pinned(Options options, const std::string &tensor, NamedLayout layout) {
  std::erase_if(options.pins, [&](const Pin &pin) { return pin.tensor == tensor; });
  options.pins.push_back({.tensor = tensor, .layout = std::move(layout)});
  return options;
}

}  // namespace

LayoutPrediction predictLayout(const Problem &problem, const Options &options,
                               const std::string &tensor, const NamedLayout &layout) {
  LayoutPrediction prediction{.layout = shortText(layout), .variant = {}};
  const Expected<Decision> decision = decidePlan(problem, pinned(options, tensor, layout));
  if (!decision) {
    prediction.rejection = decision.error().what();
    return prediction;
  }
  const Plan &plan = decision->planned.plan;
  prediction.variant = plan.variant;
  prediction.chunks = chunkCount(plan);
  prediction.graphSeconds = planFigures(plan)["graphSeconds"];
  prediction.seconds = plan.predictedSeconds;
  prediction.workspaceBytes = plan.workspaceBytes;
  return prediction;
}

Expected<std::vector<LayoutPrediction>> predictLayouts(const Problem &problem,
                                                       const Options &options, const Plan &plan,
                                                       const std::string &tensor,
                                                       const std::optional<NamedLayout> &own) {
  const Expected<Decision> stored = decidePlan(problem, pinned(options, tensor, {}));
  if (!stored) return Unexpected(stored.error());
  std::vector<NamedLayout> layouts = layoutsOf(stored->best().selection, tensor);
  if (own && std::ranges::find(layouts, *own) == layouts.end()) layouts.push_back(*own);
  std::vector<LayoutPrediction> predictions;
  for (const NamedLayout &layout : layouts)
    predictions.push_back(predictLayout(problem, options, tensor, layout));
  std::ranges::stable_sort(predictions, {}, [&](const LayoutPrediction &one) {
    return std::tuple(!one.rejection.empty(), one.chunks != chunkCount(plan), one.graphSeconds);
  });
  return predictions;
}

bool isPlan(const LayoutPrediction &prediction, const Plan &plan) {
  return prediction.rejection.empty() && prediction.variant == plan.variant &&
         prediction.chunks == chunkCount(plan) &&
         std::abs(prediction.seconds - plan.predictedSeconds) <= 1e-9 * plan.predictedSeconds &&
         prediction.workspaceBytes == plan.workspaceBytes;
}

namespace {

/// As one graph, the best path of a selection in so many chunks; nothing where it does not run so.
std::optional<double> graphSecondsOf(const Problem &problem, const Options &options,
                                     const SelectedVariant &variant, int chunks, bool isPipelined) {
  const Expected<PlannedKernels> planned =
      planOf(problem.context, variant, variant.selection.best(), chunks, options.isConcurrent(),
             isPipelined);
  if (!planned) return std::nullopt;
  return planFigures(planned->plan)["graphSeconds"].get<double>();
}

/// Of all selections that rank the layouts of one tensor: some seconds.
constexpr int64_t mostWork = 200'000'000;

}  // namespace

std::vector<NamedLayout> nearestLayouts(const Problem &problem, const Options &options,
                                        const Decision &decision, const std::string &tensor,
                                        const NamedLayout &layout) {
  const Variant &variant = problem.variants[decision.best().index];
  const int chunks = chunkCount(decision.planned.plan);
  const select::Selection &selection = decision.best().selection;
  const std::vector<NamedLayout> layouts = layoutsOf(selection, tensor);
  if (selection.statistics().work * std::ssize(layouts) > mostWork) return {};
  std::vector<NamedLayout> others;
  std::vector<select::VariantProblem> asked;
  for (const NamedLayout &one : layouts) {
    if (one == layout) continue;
    others.push_back(one);
    asked.push_back(variantProblem(problem, variant, options, pinned(options, tensor, one).pins,
                                   layouts.size()));
  }
  std::vector<std::pair<double, NamedLayout>> ranked;
  try {
    select::VariantSelections solved = selectIn(problem, std::move(asked));
    for (size_t n = 0; n < others.size(); ++n) {
      if (!solved.solved[n]) continue;
      const SelectedVariant own{.index = decision.best().index,
                                .name = variant.name(),
                                .notes = variant.notes,
                                .selection = std::move(*solved.solved[n])};
      if (const std::optional<double> seconds =
              graphSecondsOf(problem, options, own, chunks, decision.isPipelined))
        ranked.emplace_back(*seconds, others[n]);
    }
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported) throw;
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<double, NamedLayout>::first);
  std::vector<NamedLayout> nearest;
  for (auto &[seconds, one] : ranked) nearest.push_back(std::move(one));
  return nearest;
}

}  // namespace weft::decision
