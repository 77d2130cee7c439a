// One decision for each layout; see LayoutPredictions.h.
#include "tools/driver/LayoutPredictions.h"

#include "kernel/Error.h"
#include "plan/PlanFigures.h"
#include "tools/driver/Pins.h"
#include "tools/driver/Planning.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <tuple>

namespace weft::driver {
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

/// With these pins in place of the compilation's.
LayoutPrediction predict(const Compilation &compilation,
                         const std::vector<ProposedVariant> &proposed,
                         const std::vector<Pin> &pins) {
  LayoutPrediction prediction;
  try {
    const Selected selected = compilation.decide(proposed, pins);
    const Plan plan = chosenPlan(compilation, selected).plan;
    prediction.variant = plan.variant;
    prediction.chunks = chunkCount(plan);
    prediction.graphSeconds = planFigures(plan)["graphSeconds"];
    prediction.seconds = plan.predictedSeconds;
    prediction.workspaceBytes = plan.workspaceBytes;
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    prediction.rejection = error.what();
  }
  return prediction;
}

/// The compilation's pins without that of `tensor`, then `tensor` in `order`.
std::vector<Pin> pinsWith(const Compilation &compilation, const std::string &tensor,
                          std::vector<std::string> order) {
  std::vector<Pin> pins = compilation.choiceFlags().pinned();
  std::erase_if(pins, [&](const Pin &pin) { return pin.tensor == tensor; });
  pins.push_back({.tensor = tensor, .order = std::move(order)});
  return pins;
}

}  // namespace

std::vector<LayoutPrediction> predictLayouts(const Compilation &compilation,
                                             const std::vector<ProposedVariant> &proposed,
                                             const Plan &plan, const std::string &tensor,
                                             const std::vector<std::string> &own) {
  std::vector<std::vector<std::string>> orders = ordersOf(
      compilation.decide(proposed, pinsWith(compilation, tensor, {})).best().selection, tensor);
  if (!own.empty() && std::ranges::find(orders, own) == orders.end()) orders.push_back(own);
  std::vector<LayoutPrediction> predictions;
  for (std::vector<std::string> &order : orders) {
    const std::string layout = joined(order);
    predictions.push_back(
        predict(compilation, proposed, pinsWith(compilation, tensor, std::move(order))));
    predictions.back().layout = layout;
  }
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
std::optional<double> graphSecondsOf(const Compilation &compilation, SelectedVariant &variant,
                                     int chunks) {
  try {
    const PlannedKernels planned = planOf(compilation, variant, variant.selection.best(), chunks,
                                          compilation.choiceFlags().concurrencyRequested());
    return planFigures(planned.plan)["graphSeconds"].get<double>();
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    return std::nullopt;
  }
}

/// Of all selections that rank the layouts of one tensor: some seconds.
constexpr int64_t mostWork = 200'000'000;

/// The other layouts of a tensor, nearest to the plan first: in its variant and in as many chunks,
/// as one graph; none where that would take long. They are selected together, so that every kernel
/// is priced once. The layouts that the solved selection graph has prices of are few: states that
/// lead to dear plans are cut.
std::vector<std::string> nearestLayouts(const Compilation &compilation,
                                        const std::vector<ProposedVariant> &proposed,
                                        const Selected &selected, const Plan &plan,
                                        const LayoutQuestion &question) {
  const auto chosen = std::ranges::find_if(
      proposed, [&](const ProposedVariant &variant) { return variant.name() == plan.variant; });
  const select::Selection &selection = selected.best().selection;
  std::vector<std::vector<std::string>> orders = ordersOf(selection, question.tensor);
  if (chosen == proposed.end() || selection.problem().ops.size() >= manyOps) return question.others;
  if (selection.statistics().work * std::ssize(orders) > mostWork) return {};
  const select::Problem problem = compilation.problems(proposed)[size_t(chosen - proposed.begin())];
  std::vector<std::string> names;
  std::vector<select::VariantProblem> asked;
  for (std::vector<std::string> &order : orders) {
    const std::string name = joined(order);
    if (name == question.layout) continue;
    names.push_back(name);
    asked.push_back(variantProblem(compilation.choiceFlags(), *chosen, problem,
                                   pinsWith(compilation, question.tensor, std::move(order)),
                                   orders.size()));
  }
  std::vector<std::pair<double, std::string>> ranked;
  try {
    select::VariantSelections solved =
        select::selectVariants(std::move(asked), compilation.costModel());
    for (size_t n = 0; n < names.size(); ++n) {
      if (!solved.solved[n]) continue;
      SelectedVariant variant{.proposed = {}, .selection = std::move(*solved.solved[n])};
      if (const std::optional<double> seconds =
              graphSecondsOf(compilation, variant, chunkCount(plan)))
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

}  // namespace

std::optional<LayoutChange> costliestChange(const Compilation &compilation,
                                            const std::vector<ProposedVariant> &proposed,
                                            const Selected &selected, const Plan &plan,
                                            const nlohmann::json &layouts) {
  constexpr size_t most = 3, mostPredictions = 2;  // tensors, and layouts of each
  // Where the search was cut, what it left out may outweigh any layout; and each prediction is a
  // search as long.
  // So it is with a limit of memory, within which plans of all variants are packed.
  if (!selected.searchCuts.empty() || compilation.choiceFlags().maxMemoryBytes())
    return std::nullopt;
  const double graphSeconds = planFigures(plan)["graphSeconds"];
  for (const LayoutQuestion &question : layoutQuestions(plan, layouts) | std::views::take(most)) {
    std::optional<LayoutChange> best;
    const std::vector<std::string> nearest =
        nearestLayouts(compilation, proposed, selected, plan, question);
    for (const std::string &other : nearest | std::views::take(mostPredictions)) {
      const LayoutPrediction prediction =
          predict(compilation, proposed, pinsWith(compilation, question.tensor, parseOrder(other)));
      if (!prediction.rejection.empty() || prediction.chunks != chunkCount(plan)) continue;
      const double seconds = prediction.graphSeconds - graphSeconds;
      if (!best || seconds < best->seconds)
        best = {.tensor = question.tensor,
                .layout = question.layout,
                .other = other,
                .seconds = seconds,
                .workspaceBytes = prediction.workspaceBytes};
    }
    if (best && isNotable(plan, *best)) return best;
  }
  return std::nullopt;
}

}  // namespace weft::driver
