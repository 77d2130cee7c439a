// Plans of several paths, compared by measuring; see MeasuredChoice.h.
#include "passes/decide/MeasuredChoice.h"

#include "passes/decide/ChunkChoice.h"
#include "passes/select/StepText.h"
#include "plan/ConcurrentLaunches.h"
#include "plan/GraphPrediction.h"

#include <algorithm>
#include <set>

namespace weft::decision {
namespace {

/// What a plan launches, in which layouts: equal for plans that differ in nothing but the way they
/// were found.
std::string launches(const Plan &plan) {
  std::string text;
  for (const PlanKernel &kernel : plan.kernels)
    text +=
        fmt::format("{}{} {} {} {} -> {}\n", kernel.chunk && kernel.chunk->isSlice ? "slice " : "",
                    kernel.name, kernel.family, kernel.configuration,
                    fmt::join(kernel.inputLayouts, " "), fmt::join(kernel.outputLayouts, " "));
  return text;
}

/// Steps of a path that another of the same variant lacks.
std::vector<std::string> otherSteps(const select::Problem &problem,
                                    const select::SelectionResult &path,
                                    const select::SelectionResult &than) {
  std::set<std::string> known;
  for (const select::Step &step : than.steps) known.insert(select::printStep(problem, step));
  std::vector<std::string> different;
  for (const select::Step &step : path.steps)
    if (std::string text = select::printStep(problem, step); !known.contains(text))
      different.push_back(std::move(text));
  return different;
}

}  // namespace

std::vector<RankedPath> plansToMeasure(const PlanContext &context, const Options &options,
                                       const Decision &decision, int count) {
  std::vector<RankedPath> found;
  std::set<std::string> seen;
  const auto take = [&](size_t variant, const select::SelectionResult &path, int chunks, int most,
                        bool isPipelined = false) {
    if (int(found.size()) >= most) return;
    const Expected<PlannedKernels> planned = planOf(context, decision.variants[variant], path,
                                                    chunks, options.isConcurrent(), isPipelined);
    if (!planned && planned.error().kind == ErrorKind::unsupported)
      return;  // not in so many chunks
    if (!planned) throw planned.error();
    const Plan &plan = planned->plan;
    if ((options.maxMemory && plan.workspaceBytes > *options.maxMemory) ||
        !seen.insert(launches(plan)).second)
      return;
    found.push_back({.variant = variant,
                     .path = path,
                     .chunks = chunks,
                     .concurrent = options.isConcurrent() || isPipelined,
                     .isPipelined = isPipelined,
                     .seconds = predictGraph(plan, context.prices->device()).seconds(),
                     .sumSeconds = plan.predictedSeconds});
  };
  const auto takeVariants = [&](int most) {
    for (size_t variant = 0; variant < decision.variants.size(); ++variant) {
      const SelectedVariant &one = decision.variants[variant];
      const bool isFitted = one.fitted && !decision.isPipelined;
      take(variant, one.path(), isFitted ? one.fitted->chunks : decision.chunks, most,
           decision.isPipelined);
    }
  };
  take(decision.chosen, decision.path(), decision.chunks, count, decision.isPipelined);
  if (options.slices == 0) {
    std::vector<PricedChunking> pipelines = decision.pricedPipelines;
    std::ranges::stable_sort(pipelines, {}, &PricedChunking::seconds);
    for (const PricedChunking &one : pipelines)
      take(decision.chosen, decision.path(), one.chunks, (count + 1) / 2, one.chunks > 1);
  }
  std::string rejection;
  std::vector<PricedChunking> others =
      pricedChunkings(context, options, decision.best(), decision.path(), rejection);
  std::ranges::stable_sort(others, {}, &PricedChunking::seconds);
  for (const PricedChunking &other : others)
    if (options.slices <= 1) take(decision.chosen, decision.path(), other.chunks, (count + 1) / 2);
  takeVariants((3 * count + 3) / 4);
  for (const select::SelectionResult &path : decision.best().selection.kBest(count))
    take(decision.chosen, path, decision.chunks, count, decision.isPipelined);
  takeVariants(count);
  std::stable_sort(found.begin() + 1, found.end(),
                   [](const RankedPath &a, const RankedPath &b) { return a.seconds < b.seconds; });
  return found;
}

namespace {

/// ", 4 slices"; empty for the whole.
std::string chunksOf(const RankedPath &one) {
  return one.chunks == 1
             ? ""
             : fmt::format(", {} {}", one.chunks, one.isPipelined ? "slices" : "chunks");
}

/// Times the plans, keeps what was found in the decision, and returns which of them to keep.
size_t compare(const PlanContext &context, Decision &decision,
               const std::vector<RankedPath> &ranked, const Measure &measure) {
  std::vector<PlanToMeasure> plans;
  for (const RankedPath &one : ranked) {
    const SelectedVariant &variant = decision.variants[one.variant];
    plans.push_back({.name = fmt::format("plan {} of {} (variant {}{}{})", plans.size() + 1,
                                         ranked.size(), variant.name, chunksOf(one),
                                         one.concurrent && !one.isPipelined ? ", concurrent" : ""),
                     .planned = valueOrThrow(planOf(context, variant, one.path, one.chunks,
                                                    one.concurrent, one.isPipelined))});
  }
  const MeasuredPlans measured = measure(std::move(plans));

  for (TimedPath &earlier : decision.timed) earlier.chosen = false;
  for (size_t index = 0; index < ranked.size(); ++index) {
    const SelectedVariant &variant = decision.variants[ranked[index].variant];
    TimedPath timed{.variant = variant.name,
                    .chunks = ranked[index].chunks,
                    .concurrent = ranked[index].concurrent,
                    .isPipelined = ranked[index].isPipelined,
                    .predicted = ranked[index].sumSeconds,
                    .predictedGraph = ranked[index].seconds,
                    .chosen = index == measured.kept,
                    .measurement = measured.times[index].measurement,
                    .problem = measured.times[index].problem,
                    .different = otherSteps(variant.selection.problem(), ranked[index].path,
                                            variant.selection.best())};
    if (timed.measurement) timed.measurement->ratio = timed.measurement->seconds / timed.predicted;
    decision.timed.push_back(std::move(timed));
  }
  return measured.kept;
}

/// Whether its kernels may run at once, within the memory that is allowed.
bool mayBeConcurrent(const PlanContext &context, const Options &options,
                     const SelectedVariant &variant, const RankedPath &one) {
  const Plan plan = valueOrThrow(planOf(context, variant, one.path, one.chunks, true)).plan;
  return mayRunConcurrently(launchesOf(plan)) &&
         (!options.maxMemory || plan.workspaceBytes <= *options.maxMemory);
}

}  // namespace

void chooseByMeasuring(const PlanContext &context, const Options &options, Decision &decision,
                       const Measure &measure) {
  const std::vector<RankedPath> ranked =
      plansToMeasure(context, options, decision, options.plansToMeasure);
  const size_t index = compare(context, decision, ranked, measure);
  const RankedPath kept = ranked[index];
  if (index > 0) decision.tradedShare = 0, decision.tradedBytes = 0;
  decision.chosen = kept.variant;
  decision.chosenPath = kept.path;
  decision.chunks = kept.chunks;
  decision.isPipelined = kept.isPipelined;
  decision.concurrent = kept.concurrent;
  if (kept.isPipelined) return;
  if (options.concurrent != Concurrency::measured ||
      !mayBeConcurrent(context, options, decision.best(), kept))
    return;
  std::vector<RankedPath> twins{kept, kept};
  twins.back().concurrent = true;
  decision.concurrent = twins[compare(context, decision, twins, measure)].concurrent;
}

}  // namespace weft::decision
