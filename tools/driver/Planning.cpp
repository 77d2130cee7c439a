// Plans with their provenance; see Planning.h.
#include "tools/driver/Planning.h"

#include "tools/driver/PlanParts.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::driver {
namespace {

void noteUnmeasured(const select::Statistics &statistics, std::vector<std::string> &notes) {
  if (statistics.measured == 0) return;
  if (statistics.unmeasuredKernels > 0)
    notes.push_back(fmt::format("{} of {} candidate kernels have no measured time and were priced by the model", statistics.unmeasuredKernels,
                                statistics.kernels));
  notes.insert(notes.end(), statistics.notes.begin(), statistics.notes.end());
}

}  // namespace

PlannedKernels planOf(const Compilation &compilation, const SelectedVariant &variant, const select::Plan &path, int count, bool branches) {
  const select::Selection &selection = variant.selection;
  const Parts parts{.count = count, .prices = &compilation.costModel(), .branches = branches};
  PlannedKernels planned = buildPlan(selection.problem(), path, compilation.costModel().device(), compilation.choiceFlags().free, &parts);
  const models::Description &description = compilation.description();
  runtime::Plan &plan = planned.plan;
  plan.model = description.name;
  plan.variant = variant.proposed.name();
  plan.dims = description.dims;
  const auto argument = std::ranges::find(plan.tensors, "argument", &runtime::PlanTensor::role);
  plan.dtype = argument == plan.tensors.end() ? compilation.elementType() : argument->dtype;
  plan.device = compilation.costModel().device().name;
  plan.costModel = pricesOf(plan, compilation.costModel());
  plan.notes.insert(plan.notes.end(), variant.proposed.notes.begin(), variant.proposed.notes.end());
  noteUnmeasured(selection.statistics(), plan.notes);
  return planned;
}

PlannedKernels chosenPlan(const Compilation &compilation, const Selected &selected) {
  PlannedKernels planned = planOf(compilation, selected.best(), selected.path(), selected.parts, selected.branches);
  planned.plan.lowerBoundSeconds = selected.lowerBound;
  for (const PinRegret &pin : selected.pins)
    if (std::ranges::find(planned.plan.tensors, pin.tensor, &runtime::PlanTensor::logical) == planned.plan.tensors.end())
      planned.plan.notes.push_back(fmt::format("--pin {}={} changes nothing: it lives inside one kernel and is never stored", pin.tensor, pin.layout));
  return planned;
}

}  // namespace weft::driver
