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

/// The path as a whole.
PlanDraft wholeDraft(const select::Problem &problem, const select::SelectionResult &path,
                     const CostModel &prices, bool free) {
  PlanDraft draft = draftPlan(problem, path, prices.device(), free);
  takeMeasurementsOfStridedViews(draft.planned, prices);
  return draft;
}

PlannedKernels finishDraft(PlanDraft draft, const select::Problem &problem,
                           const Chunking &chunks) {
  return finishPlan(std::move(draft), problem, chunks.concurrent || chunks.isPipelined);
}

Chunking chunkingOf(const PlanContext &context, int count, bool concurrent, bool isPipelined) {
  return {.count = count,
          .prices = context.prices,
          .concurrent = concurrent,
          .isPipelined = isPipelined && count > 1,
          .known = context.chunkConfigurations.get()};
}

/// Errors of what is asked are results; others are thrown.
template <typename Make>
auto asExpected(const Make &make) -> Expected<decltype(make())> {
  try {
    return make();
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    return Unexpected(error);
  }
}

/// Says in a plan what is known beyond its path.
void addProvenance(PlannedKernels &planned, const PlanContext &context,
                   const SelectedVariant &variant) {
  Plan &plan = planned.plan;
  plan.model = printableLine(context.model);  // of a file, whose name may hold anything
  plan.variant = variant.name;
  plan.dims = context.dims;
  const PlanTensor *argument = elementsArgument(plan);
  plan.dtype = argument ? argument->dtype : context.dtype;
  plan.device = context.prices->device().name;
  notePrices(plan, *context.prices);
  addNotes(plan.notes, NoteKind::rewrite, variant.notes);
  noteUnmeasured(variant.selection.statistics(), plan.notes);
  noteMargins(planned, plan.notes);
  noteDeterminism(planned, *context.prices);
}

}  // namespace

PlannedKernels planOfPath(const select::Problem &problem, const select::SelectionResult &path,
                          const Chunking &chunks, bool free) {
  PlanDraft draft = wholeDraft(problem, path, *chunks.prices, free);
  if (chunks.count > 1) draft = draftInChunks(draft, chunks);
  return finishDraft(std::move(draft), problem, chunks);
}

Expected<PlannedKernels> planOf(const PlanContext &context, const SelectedVariant &variant,
                                const select::SelectionResult &path, int count, bool concurrent,
                                bool isPipelined) {
  Expected<PlannedKernels> planned = asExpected([&] {
    return planOfPath(variant.selection.problem(), path,
                      chunkingOf(context, count, concurrent, isPipelined), context.free);
  });
  if (planned) addProvenance(*planned, context, variant);
  return planned;
}

PathPlans::PathPlans(const PlanContext &context, const SelectedVariant &variant,
                     const select::SelectionResult &path)
    : context(context),
      problem(variant.selection.problem()),
      whole(asExpected([&] { return wholeDraft(problem, path, *context.prices, context.free); })) {}

Expected<PlannedKernels> PathPlans::in(int count, bool concurrent, bool isPipelined) const {
  if (!whole) return Unexpected(whole.error());
  return asExpected([&] {
    const Chunking chunks = chunkingOf(context, count, concurrent, isPipelined);
    return finishDraft(count > 1 ? draftInChunks(*whole, chunks) : *whole, problem, chunks);
  });
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
