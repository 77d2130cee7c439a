// Plans of several paths, compared by measuring; see MeasuredChoice.h.
#include "passes/decide/MeasuredChoice.h"

#include "passes/configure/OptimisticCost.h"
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

/// The path priced at the other end of its estimates' margins.
select::SelectionResult atOtherEnd(select::SelectionResult path) {
  path.seconds = 0;
  for (select::Step &step : path.steps) {
    step.cost = weft::atOtherEnd(std::move(step.cost));
    path.seconds += step.cost.seconds;
  }
  return path;
}

/// A path whose estimates are at their optimistic end, at the prices that everything else has.
select::SelectionResult priced(select::SelectionResult path, const select::Problem &problem,
                               const CostModel &prices) {
  path.seconds = 0;
  for (select::Step &step : path.steps) {
    if (step.cost.margin != 0) {
      const Kernel kernel = step.candidate >= 0
                                ? problem.candidates[size_t(step.candidate)].kernel
                                : select::transposeKernel(problem.tensors[size_t(step.tensor)]);
      step.cost = prices.cost(kernel, step.configuration);
    }
    path.seconds += step.cost.seconds;
  }
  return path;
}

/// Of `decision` the variant that another decision on the same problem calls so.
std::optional<size_t> sameVariant(const Decision &decision, const SelectedVariant &other) {
  const auto found = std::ranges::find(decision.variants, other.index, &SelectedVariant::index);
  if (found == decision.variants.end()) return std::nullopt;
  return size_t(found - decision.variants.begin());
}

}  // namespace

std::vector<RankedPath> plansToMeasure(const PlanContext &context, const Options &options,
                                       const Decision &decision, const OptimisticPaths &optimistic,
                                       int count) {
  std::vector<RankedPath> found;
  std::set<std::string> seen;
  PlanContext atOptimisticEnd = context;
  atOptimisticEnd.prices = &optimistic.prices;
  atOptimisticEnd.spaces = nullptr;
  atOptimisticEnd.chunkConfigurations = nullptr;
  const auto take = [&](size_t variant, const select::SelectionResult &path, int chunks, int most,
                        bool isPipelined = false) {
    if (int(found.size()) >= most) return;
    const auto planned = [&](const PlanContext &priced, const select::SelectionResult &way) {
      return planOf(priced, decision.variants[variant], way, chunks, options.isConcurrent(),
                    isPipelined);
    };
    const Expected<PlannedKernels> own = planned(context, path);
    if (!own && own.error().kind == ErrorKind::unsupported) return;  // not in so many chunks
    if (!own) throw own.error();
    const Plan &plan = own->plan;
    if ((options.maxMemory && plan.workspaceBytes > *options.maxMemory) ||
        !seen.insert(launches(plan)).second)
      return;
    const Plan best = valueOrThrow(planned(atOptimisticEnd, atOtherEnd(path))).plan;
    found.push_back({.variant = variant,
                     .path = path,
                     .chunks = chunks,
                     .concurrent = options.isConcurrent() || isPipelined,
                     .isPipelined = isPipelined,
                     .seconds = predictGraph(plan, context.prices->device()).seconds(),
                     .sumSeconds = plan.predictedSeconds,
                     .optimistic = predictGraph(best, context.prices->device()).seconds()});
  };
  const auto takeOptimistic = [&](const select::SelectionResult &path) {
    const auto variant = sameVariant(decision, optimistic.decision.variants.front());
    if (!variant) return;
    const select::SelectionResult own =
        priced(path, decision.variants[*variant].selection.problem(), *context.prices);
    const size_t before = found.size();
    take(*variant, own, decision.chunks, count, decision.isPipelined);
    const bool mayBeWhole = options.chunks == 0 && decision.chunks > 1 && !decision.isPipelined;
    if (found.size() == before && mayBeWhole) take(*variant, own, 1, count);
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
  const select::Selection &bestAtOptimisticEnd = optimistic.decision.variants.front().selection;
  takeOptimistic(bestAtOptimisticEnd.best());
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
  const std::vector<select::SelectionResult> next = decision.best().selection.kBest(count),
                                             nextOptimistic = bestAtOptimisticEnd.kBest(count);
  for (size_t n = 0; n < std::max(next.size(), nextOptimistic.size()); ++n) {
    if (n < nextOptimistic.size()) takeOptimistic(nextOptimistic[n]);
    if (n < next.size())
      take(decision.chosen, next[n], decision.chunks, count, decision.isPipelined);
  }
  takeVariants(count);
  std::ranges::stable_sort(found.begin() + 1, found.end(), {}, &RankedPath::optimistic);
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
                    .optimistic = ranked[index].optimistic,
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
                       const OptimisticPaths &optimistic, const Measure &measure) {
  const std::vector<RankedPath> ranked =
      plansToMeasure(context, options, decision, optimistic, options.plansToMeasure);
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
