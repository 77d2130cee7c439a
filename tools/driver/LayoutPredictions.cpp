// One decision for each layout; see LayoutPredictions.h.
#include "tools/driver/LayoutPredictions.h"

#include "kernel/Error.h"
#include "tools/driver/Pins.h"
#include "tools/driver/Planning.h"

#include <algorithm>
#include <ranges>

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
    const runtime::Plan plan = chosenPlan(compilation, selected).plan;
    prediction.variant = plan.variant;
    prediction.chunks = selected.parts;
    prediction.seconds = plan.predictedSeconds;
    prediction.workspaceBytes = plan.workspaceBytes;
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    prediction.refusal = error.what();
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
                                             const std::string &tensor,
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
  std::ranges::stable_sort(predictions, {}, [](const LayoutPrediction &one) {
    return std::pair(!one.refusal.empty(), one.seconds);
  });
  return predictions;
}

std::optional<LayoutChange> costliestChange(const Compilation &compilation,
                                            const std::vector<ProposedVariant> &proposed,
                                            const runtime::Plan &plan,
                                            const nlohmann::json &layouts) {
  constexpr size_t most = 3;  // questions, each a selection
  const std::vector<LayoutChange> changes = layoutChanges(plan, layouts);
  for (LayoutChange change : changes | std::views::take(most)) {
    const LayoutPrediction prediction = predict(
        compilation, proposed, pinsWith(compilation, change.tensor, parseOrder(change.other)));
    if (!prediction.refusal.empty()) continue;
    change.seconds = prediction.seconds - plan.predictedSeconds;
    change.workspaceBytes = prediction.workspaceBytes;
    if (isNotable(plan, change)) return change;
  }
  return std::nullopt;
}

}  // namespace weft::driver
