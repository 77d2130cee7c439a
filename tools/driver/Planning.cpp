// Plans with their provenance; see Planning.h.
#include "tools/driver/Planning.h"

#include "kernel/PlainText.h"
#include "plan/PlanChunks.h"
#include "tools/driver/Pins.h"
#include "tools/driver/PlanConsistency.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::driver {
namespace {

void noteUnmeasured(const select::Statistics &statistics, std::vector<std::string> &notes) {
  if (statistics.measured == 0) return;
  if (statistics.unmeasuredKernels > 0)
    notes.push_back(
        fmt::format("{} of {} candidate kernels have no measured time and were priced by the model",
                    statistics.unmeasuredKernels, statistics.kernels));
  notes.insert(notes.end(), statistics.notes.begin(), statistics.notes.end());
}

}  // namespace

PlannedKernels planOf(const Compilation &compilation, const SelectedVariant &variant,
                      const select::SelectionResult &path, int count, bool concurrent) {
  const select::Selection &selection = variant.selection;
  const Chunking chunks{
      .count = count, .prices = &compilation.costModel(), .concurrent = concurrent};
  PlannedKernels planned = buildPlan(selection.problem(), path, compilation.costModel().device(),
                                     compilation.choiceFlags().free, &chunks);
  const models::Description &description = compilation.description();
  Plan &plan = planned.plan;
  plan.model = printableLine(description.name);  // of a file, whose name may hold anything
  plan.variant = variant.proposed.name();
  plan.dims = description.dims;
  const PlanTensor *argument = elementsArgument(plan);
  plan.dtype = argument ? argument->dtype : compilation.elementType();
  plan.device = compilation.costModel().device().name;
  plan.costModel = pricesOf(plan, compilation.costModel());
  plan.notes.insert(plan.notes.end(), variant.proposed.notes.begin(), variant.proposed.notes.end());
  noteUnmeasured(selection.statistics(), plan.notes);
  return planned;
}

PlannedKernels chosenPlan(const Compilation &compilation, const Selected &selected) {
  PlannedKernels planned =
      planOf(compilation, selected.best(), selected.path(), selected.chunks, selected.concurrent);
  planned.plan.lowerBoundSeconds = selected.lowerBound;
  checkHonoured(planned.plan, selected.asked);
  if (const std::string line = memoryLine(selected); !line.empty())
    planned.plan.notes.push_back(line);
  return planned;
}

std::string memoryLine(const Selected &selected) {
  const std::vector<std::string> &cuts = selected.searchCuts;
  if (cuts.empty()) return "";
  return fmt::format(
      "the search reached its limits (--search-memory) and ended with the best plan found: {}{}",
      cuts.front(), cuts.size() > 1 ? fmt::format("; and {} more cuts", cuts.size() - 1) : "");
}

double secondsOf(const Selected &selected, const SelectedVariant &variant, const Plan &plan) {
  if (&variant == &selected.best()) return plan.predictedSeconds;
  return variant.fitted ? variant.fitted->seconds : variant.selection.best().seconds;
}

std::vector<PlannedStep> plannedSteps(const PlannedKernels &planned,
                                      const select::SelectionResult &path) {
  std::vector<PlannedStep> steps(path.steps.size());
  for (const ChosenKernel &kernel : planned.kernels) {
    PlannedStep &step = steps[size_t(kernel.step)];
    step.seconds += kernel.cost.seconds;
    ++step.chunks;
  }
  return steps;
}

}  // namespace weft::driver
