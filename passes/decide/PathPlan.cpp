// Plans with their provenance; see PathPlan.h.
#include "passes/decide/PathPlan.h"

#include "kernel/PlainText.h"
#include "passes/configure/Margins.h"
#include "passes/decide/Decide.h"
#include "passes/decide/PriceNotes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace weft::decision {
namespace {

void addNotes(std::vector<PlanNote> &notes, NoteKind kind, const std::vector<std::string> &texts) {
  for (const std::string &text : texts) notes.push_back({.kind = kind, .text = text});
}

void noteUnmeasured(const select::Statistics &statistics, std::vector<PlanNote> &notes) {
  if (statistics.measured == 0) return;
  if (statistics.unmeasuredKernels > 0)
    addNotes(notes, NoteKind::prices,
             {fmt::format(
                 "{} of {} candidate kernels have no measured time and were priced by the model",
                 statistics.unmeasuredKernels, statistics.kernels)});
  addNotes(notes, NoteKind::prices, statistics.notes);
}

/// Names the kernels whose estimates have a larger margin than every estimate beside measurements.
void noteMargins(const PlannedKernels &planned, std::vector<PlanNote> &notes) {
  std::map<int, std::vector<std::string>> byPercent;
  for (const ChosenKernel &kernel : planned.kernels) {
    const int percent = int(std::lround(100 * kernel.cost.margin));
    std::vector<std::string> &names = byPercent[percent];
    const std::string &name = kernel.kernel.name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  for (const auto &[percent, names] : byPercent)
    if (percent > std::lround(100 * margins::besideMeasurements))
      addNotes(
          notes, NoteKind::prices,
          {fmt::format("estimated, with a margin of {}%: {}", percent, fmt::join(names, "; "))});
}

}  // namespace

PlannedKernels planOfPath(const select::Problem &problem, const select::SelectionResult &path,
                          const Chunking &chunks, bool free) {
  PlanDraft draft = draftPlan(problem, path, chunks.prices->device(), free);
  takeMeasurementsOfStridedViews(draft.planned, *chunks.prices);
  if (chunks.count > 1) runInChunks(draft, chunks);
  return finishPlan(std::move(draft), problem, chunks.concurrent || chunks.isPipelined);
}

Expected<PlannedKernels> planOf(const PlanContext &context, const SelectedVariant &variant,
                                const select::SelectionResult &path, int count, bool concurrent,
                                bool isPipelined) {
  const select::Selection &selection = variant.selection;
  const Chunking chunks{.count = count,
                        .prices = context.prices,
                        .concurrent = concurrent,
                        .isPipelined = isPipelined && count > 1,
                        .known = context.chunkConfigurations.get()};
  PlannedKernels planned;
  try {
    planned = planOfPath(selection.problem(), path, chunks, context.free);
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
  notePrices(plan, *context.prices);
  addNotes(plan.notes, NoteKind::rewrite, variant.notes);
  noteUnmeasured(selection.statistics(), plan.notes);
  noteMargins(planned, plan.notes);
  noteDeterminism(planned, *context.prices);
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
