// Plans with their provenance; see PathPlan.h.
#include "passes/decide/PathPlan.h"

#include "kernel/PlainText.h"
#include "passes/decide/Decide.h"
#include "plan/PlanChunks.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::decision {
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

Expected<PlannedKernels> planOf(const PlanContext &context, const SelectedVariant &variant,
                                const select::SelectionResult &path, int count, bool concurrent) {
  const select::Selection &selection = variant.selection;
  const Chunking chunks{.count = count, .prices = context.prices, .concurrent = concurrent};
  PlannedKernels planned;
  try {
    planned = buildPlan(selection.problem(), path, context.prices->device(), context.free, &chunks);
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    return Unexpected(error);
  }
  Plan &plan = planned.plan;
  plan.model = printableLine(context.model);  // of a file, whose name may hold anything
  plan.variant = variant.name;
  plan.dims = context.dims;
  const PlanTensor *argument = elementsArgument(plan);
  plan.dtype = argument ? argument->dtype : context.dtype;
  plan.device = context.prices->device().name;
  plan.costModel = pricesOf(plan, *context.prices);
  plan.notes.insert(plan.notes.end(), variant.notes.begin(), variant.notes.end());
  noteUnmeasured(selection.statistics(), plan.notes);
  return planned;
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

}  // namespace weft::decision
