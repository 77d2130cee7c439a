// One decision for each layout; see LayoutPredictions.h.
#include "passes/decide/LayoutPredictions.h"

#include "plan/PlanFigures.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace weft::decision {
namespace {

std::string joined(const std::vector<std::string> &order) {
  const bool letters =
      std::ranges::all_of(order, [](const std::string &name) { return name.size() == 1; });
  return fmt::format("{}", fmt::join(order, letters ? "" : ","));
}

/// The orders of axes by name of a tensor's layouts in a solved selection.
std::vector<std::vector<std::string>> ordersOf(const select::Selection &selection,
                                               const std::string &name) {
  const std::vector<select::Tensor> &tensors = selection.problem().tensors;
  const auto tensor = std::ranges::find(tensors, name, &select::Tensor::name);
  std::vector<std::vector<std::string>> orders;
  for (const Layout &layout : selection.layouts(int(tensor - tensors.begin()))) {
    orders.emplace_back();
    for (const int dimension : layout.order)
      orders.back().push_back(tensor->axes[size_t(dimension)].name);
  }
  return orders;
}

/// These options with `tensor` in `order` in place of what pins it, if anything does.
Options pinned(Options options, const std::string &tensor, std::vector<std::string> order) {
  std::erase_if(options.pins, [&](const Pin &pin) { return pin.tensor == tensor; });
  options.pins.push_back({.tensor = tensor, .order = std::move(order)});
  return options;
}

}  // namespace

LayoutPrediction predictLayout(const Problem &problem, const Options &options,
                               const std::string &tensor, const std::vector<std::string> &order) {
  LayoutPrediction prediction{.layout = joined(order), .variant = {}};
  const Expected<Decision> decision = decidePlan(problem, pinned(options, tensor, order));
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
                                                       const std::vector<std::string> &own) {
  const Expected<Decision> stored = decidePlan(problem, pinned(options, tensor, {}));
  if (!stored) return Unexpected(stored.error());
  std::vector<std::vector<std::string>> orders = ordersOf(stored->best().selection, tensor);
  if (!own.empty() && std::ranges::find(orders, own) == orders.end()) orders.push_back(own);
  std::vector<LayoutPrediction> predictions;
  for (const std::vector<std::string> &order : orders)
    predictions.push_back(predictLayout(problem, options, tensor, order));
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
                                     const SelectedVariant &variant, int chunks) {
  const Expected<PlannedKernels> planned =
      planOf(problem.context, variant, variant.selection.best(), chunks, options.isConcurrent());
  if (!planned) return std::nullopt;
  return planFigures(planned->plan)["graphSeconds"].get<double>();
}

/// Of all selections that rank the layouts of one tensor: some seconds.
constexpr int64_t mostWork = 200'000'000;

}  // namespace

std::vector<std::string> nearestLayouts(const Problem &problem, const Options &options,
                                        const Decision &decision, const std::string &tensor,
                                        const std::string &layout,
                                        const std::vector<std::string> &others) {
  const Variant &variant = problem.variants[decision.best().index];
  const int chunks = chunkCount(decision.planned.plan);
  const select::Selection &selection = decision.best().selection;
  const std::vector<std::vector<std::string>> orders = ordersOf(selection, tensor);
  if (selection.problem().ops.size() >= manyOps) return others;
  if (selection.statistics().work * std::ssize(orders) > mostWork) return {};
  std::vector<std::string> names;
  std::vector<select::VariantProblem> asked;
  for (const std::vector<std::string> &order : orders) {
    if (joined(order) == layout) continue;
    names.push_back(joined(order));
    asked.push_back(variantProblem(problem, variant, options, pinned(options, tensor, order).pins,
                                   orders.size()));
  }
  std::vector<std::pair<double, std::string>> ranked;
  try {
    select::VariantSelections solved =
        select::selectVariants(std::move(asked), *problem.context.prices);
    for (size_t n = 0; n < names.size(); ++n) {
      if (!solved.solved[n]) continue;
      const SelectedVariant own{.index = decision.best().index,
                                .name = variant.name(),
                                .notes = variant.notes,
                                .selection = std::move(*solved.solved[n])};
      if (const std::optional<double> seconds = graphSecondsOf(problem, options, own, chunks))
        ranked.emplace_back(*seconds, names[n]);
    }
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported) throw;
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<double, std::string>::first);
  std::vector<std::string> nearest;
  for (auto &[seconds, name] : ranked) nearest.push_back(std::move(name));
  return nearest;
}

}  // namespace weft::decision
