// Plans of several paths, built in memory and compared on a GPU; see MeasuredChoice.h.
#include "tools/driver/MeasuredChoice.h"

#include "kernel/Error.h"
#include "plan/GraphPrediction.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/execute/ConcurrentLaunches.h"
#include "runtime/measure/ComparePlans.h"
#include "tools/driver/ChunkChoice.h"
#include "tools/driver/Console.h"
#include "tools/driver/Emission.h"
#include "tools/driver/Planning.h"
#include "tools/driver/Report.h"

#include <algorithm>
#include <set>

namespace weft::driver {
namespace {

constexpr uint64_t inputSeed = 1;

/// What a plan launches, in which layouts: equal for plans that differ in nothing but the way they
/// were found.
std::string launches(const Plan &plan) {
  std::string text;
  for (const PlanKernel &kernel : plan.kernels)
    text += fmt::format("{} {} {} {} -> {}\n", kernel.name, kernel.family, kernel.configuration,
                        fmt::join(kernel.inputLayouts, " "), fmt::join(kernel.outputLayouts, " "));
  return text;
}

/// Steps of a path that another of the same variant lacks.
std::vector<std::string> otherSteps(const select::Problem &problem,
                                    const select::SelectionResult &path,
                                    const select::SelectionResult &than) {
  std::set<std::string> known;
  for (const select::Step &step : than.steps) known.insert(printStep(problem, step));
  std::vector<std::string> different;
  for (const select::Step &step : path.steps)
    if (std::string text = printStep(problem, step); !known.contains(text))
      different.push_back(std::move(text));
  return different;
}

runtime::Artifact buildInMemory(const Compilation &compilation, const Selected &selected,
                                const RankedPath &ranked, const std::string &architecture) {
  PlannedKernels planned = planOf(compilation, selected.variants[ranked.variant], ranked.path,
                                  ranked.chunks, ranked.concurrent);
  const EmittedPlan emitted = emitKernels(
      planned, architecture, [](const ChosenKernel &) { return std::vector<std::string>(); });
  BuildSummary summary;
  runtime::Artifact artifact;
  artifact.cubins = buildCubins(planned.plan, emitted, false, {}, summary).cubins;
  artifact.plan = std::move(planned.plan);
  return artifact;
}

}  // namespace

void MeasureFlags::declare(CLI::App &command) {
  command
      .add_flag("--measure{4}", plans,
                "time the 4 plans that are predicted to be best (--measure=N: N plans) as whole "
                "graphs on this machine's GPU and keep the "
                "fastest; the artifact then depends on the measurement")
      ->group("Choices");
}

void MeasureFlags::open(const PhaseFlags &phases,
                        std::optional<runtime::cuda::Context> &gpu) const {
  if (plans < 2)
    throw Error::badInput("--measure={}: at least 2 plans, or there is nothing to choose", plans);
  if (phases.last() < Phase::build || phases.first() >= Phase::lower)
    throw Error::badInput(
        "--measure chooses among plans that were selected and built: it goes without --stop-after, "
        "and starts before lower");
  if (runtime::findNvrtc().library.empty())
    throw Error::unsupported(
        "--measure needs NVRTC, which builds the plans to time; 'weft env' says where it is looked "
        "for");
  try {
    gpu.emplace(0);
  } catch (const Error &error) {
    throw Error(error.kind, fmt::format("--measure times plans on a GPU: {}", error.what()));
  }
}

std::vector<RankedPath> plansToMeasure(const Compilation &compilation, const Selected &selected,
                                       int count) {
  std::vector<RankedPath> found;
  std::set<std::string> seen;
  const std::optional<int64_t> limit = compilation.choiceFlags().maxMemoryBytes();
  const bool concurrent = compilation.choiceFlags().concurrencyRequested();
  const auto take = [&](size_t variant, const select::SelectionResult &path, int chunks, int most) {
    if (int(found.size()) >= most) return;
    try {
      const Plan plan =
          planOf(compilation, selected.variants[variant], path, chunks, concurrent).plan;
      if ((limit && plan.workspaceBytes > *limit) || !seen.insert(launches(plan)).second) return;
      const double seconds = predictGraph(plan, compilation.costModel().device()).seconds();
      found.push_back({.variant = variant,
                       .path = path,
                       .chunks = chunks,
                       .concurrent = concurrent,
                       .seconds = seconds,
                       .sumSeconds = plan.predictedSeconds});
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported) throw;  // not in so many chunks
    }
  };
  const auto takeVariants = [&](int most) {
    for (size_t variant = 0; variant < selected.variants.size(); ++variant) {
      const SelectedVariant &one = selected.variants[variant];
      take(variant, one.path(), one.fitted ? one.fitted->chunks : selected.chunks, most);
    }
  };
  take(selected.chosen, selected.path(), selected.chunks, count);
  std::string rejection;
  std::vector<PricedChunking> others =
      pricedChunkings(compilation, selected.best(), selected.path(), rejection);
  std::ranges::stable_sort(others, {}, &PricedChunking::seconds);
  for (const PricedChunking &other : others)
    take(selected.chosen, selected.path(), other.chunks, (count + 1) / 2);
  takeVariants((3 * count + 3) / 4);
  for (const select::SelectionResult &path : selected.best().selection.kBest(count))
    take(selected.chosen, path, selected.chunks, count);
  takeVariants(count);
  std::stable_sort(found.begin() + 1, found.end(),
                   [](const RankedPath &a, const RankedPath &b) { return a.seconds < b.seconds; });
  return found;
}

namespace {

/// Times the plans, keeps what was found in `selected`, and returns which of them to keep.
size_t compare(const Compilation &compilation, Selected &selected,
               const std::vector<RankedPath> &ranked, const TargetFlags &target,
               const runtime::cuda::Context &gpu) {
  std::vector<runtime::ComparedPlan> plans;
  Progress progress;
  for (const RankedPath &one : ranked) {
    progress.show(fmt::format("building plan {}/{} to measure", plans.size() + 1, ranked.size()));
    plans.push_back(
        {.name = fmt::format("plan {} of {} (variant {}{}{})", plans.size() + 1, ranked.size(),
                             selected.variants[one.variant].proposed.name(),
                             one.chunks > 1 ? fmt::format(", {} chunks", one.chunks) : "",
                             one.concurrent ? ", concurrent" : ""),
         .artifact = buildInMemory(compilation, selected, one, target.architecture())});
  }
  progress.show(fmt::format("timing {} plans", plans.size()));
  const runtime::PlanComparison comparison =
      runtime::comparePlans(gpu, std::move(plans), inputSeed, {});
  progress.clear();

  for (TimedPath &earlier : selected.timed) earlier.chosen = false;
  for (size_t index = 0; index < ranked.size(); ++index) {
    const SelectedVariant &variant = selected.variants[ranked[index].variant];
    TimedPath timed{.variant = variant.proposed.name(),
                    .chunks = ranked[index].chunks,
                    .concurrent = ranked[index].concurrent,
                    .predicted = ranked[index].sumSeconds,
                    .predictedGraph = ranked[index].seconds,
                    .chosen = index == comparison.kept,
                    .problem = comparison.times[index].problem,
                    .different = otherSteps(variant.selection.problem(), ranked[index].path,
                                            variant.selection.best())};
    if (const auto &measured = comparison.times[index].measurement)
      timed.measurement = {.seconds = measured->seconds.median,
                           .spread = measured->seconds.spread(),
                           .ratio = measured->seconds.median / timed.predicted,
                           .gpu = comparison.gpu,
                           .protocol = comparison.protocol};
    selected.timed.push_back(std::move(timed));
  }
  return comparison.kept;
}

/// Whether its kernels may run at once, within the memory that is allowed.
bool mayRunConcurrently(const Compilation &compilation, const SelectedVariant &variant,
                        const RankedPath &one) {
  const Plan plan = planOf(compilation, variant, one.path, one.chunks, true).plan;
  const std::optional<int64_t> limit = compilation.choiceFlags().maxMemoryBytes();
  return runtime::mayRunConcurrently(runtime::launchesOf(plan)) &&
         (!limit || plan.workspaceBytes <= *limit);
}

}  // namespace

void chooseByMeasuring(const Compilation &compilation, Selected &selected,
                       const TargetFlags &target, const MeasureFlags &flags,
                       const runtime::cuda::Context &gpu) {
  const std::vector<RankedPath> ranked = plansToMeasure(compilation, selected, flags.plans);
  const RankedPath kept = ranked[compare(compilation, selected, ranked, target, gpu)];
  selected.chosen = kept.variant;
  selected.chosenPath = kept.path;
  selected.chunks = kept.chunks;
  selected.plannedSeconds = kept.sumSeconds;
  if (!compilation.choiceFlags().isConcurrencyOpen() ||
      !mayRunConcurrently(compilation, selected.best(), kept))
    return;
  std::vector<RankedPath> twins{kept, kept};
  twins.back().concurrent = true;
  selected.concurrent = twins[compare(compilation, selected, twins, target, gpu)].concurrent;
}

}  // namespace weft::driver
