// Slices by predicted time; see PipelineChoice.h.
#include "passes/decide/PipelineChoice.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "passes/decide/ChunkChoice.h"
#include "passes/decide/PathPlan.h"
#include "plan/GraphPrediction.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace weft::decision {
namespace {

PricedChunking priced(const PlanContext &context, const PlannedKernels &planned, int slices) {
  return {.chunks = slices,
          .seconds = predictGraph(planned.plan, context.prices->device()).seconds(),
          .sumSeconds = planned.plan.predictedSeconds,
          .workspaceBytes = planned.plan.workspaceBytes,
          .isMeasured = isMeasured(planned)};
}

/// The ways in which a path runs in slices, within the limit of memory. `rejection` gets the reason
/// of the first that does not.
std::vector<PricedChunking> pricedPipelines(const PlanContext &context, const Options &options,
                                            const Decision &decision, const NearBestPath &place,
                                            std::string &rejection) {
  std::vector<PricedChunking> found;
  const PathPlans plans(context, decision.variants[place.variant], place.path);
  for (const int count : sliceCounts(options)) {
    const Expected<PlannedKernels> planned = plans.in(count, true, true);
    if (!planned) {
      if (rejection.empty()) rejection = planned.error().what();
      continue;
    }
    if (const int64_t bytes = planned->plan.workspaceBytes;
        options.maxMemory && bytes > *options.maxMemory) {
      if (rejection.empty())
        rejection = fmt::format("its workspace, {}, is more than --max-memory {}",
                                formatBytes(bytes), options.maxMemoryText);
      continue;
    }
    found.push_back(priced(context, *planned, count));
  }
  return found;
}

/// Whether `one` is known to be faster, by such a share of the other's time.
bool isFaster(const PricedChunking &one, const PricedChunking &than, double share = 0) {
  return (one.isMeasured || !than.isMeasured) && one.seconds < (1 - share) * than.seconds;
}

/// The numbers nearest to one that no path takes.
std::string nearestSlices(const PlanContext &context, const Options &options,
                          const Decision &decision, const std::vector<NearBestPath> &places) {
  constexpr int most = 64;
  const auto runs = [&](int count) {
    Options one = options;
    one.slices = count;
    std::string unused;
    return std::ranges::any_of(places, [&](const NearBestPath &place) {
      return !pricedPipelines(context, one, decision, place, unused).empty();
    });
  };
  std::vector<std::string> nearest;
  for (int below = std::min(options.slices - 1, most); below > 1 && nearest.empty(); --below)
    if (runs(below)) nearest.push_back(fmt::format("--pipeline {}", below));
  for (int above = options.slices + 1, known = int(nearest.size()); above <= most; ++above)
    if (int(nearest.size()) == known && runs(above))
      nearest.push_back(fmt::format("--pipeline {}", above));
  return nearest.empty() ? "; --pipeline 1 runs it without slices"
                         : fmt::format("; legal and nearest: {}", fmt::join(nearest, ", "));
}

std::string described(const PricedChunking &one) {
  return one.chunks == 1 ? fmt::format("without slices {}", formatSeconds(one.seconds))
                         : fmt::format("{} slices {}", one.chunks, formatSeconds(one.seconds));
}

}  // namespace

std::vector<int> sliceCounts(const Options &options) {
  if (options.slices > 0) return {options.slices};
  return {2, 3, 4, 6, 8, 12, 16};
}

void choosePipeline(const PlanContext &context, const Options &options, Decision &decision) {
  if (options.slices == 1) return;
  const PricedChunking without =
      priced(context,
             valueOrThrow(planOf(context, decision.best(), decision.path(), decision.chunks,
                                 decision.concurrent)),
             1);
  std::string rejection;
  const std::vector<NearBestPath> places = nearBestPaths(options, decision);
  std::optional<std::pair<size_t, PricedChunking>> chosen;  // place
  for (size_t place = 0; place < places.size(); ++place) {
    std::vector<PricedChunking> found =
        pricedPipelines(context, options, decision, places[place], rejection);
    bool isBest = decision.pricedPipelines.empty();
    for (const PricedChunking &one : found)
      if (chosen ? isFaster(one, chosen->second)
                 : options.slices > 1 || isFaster(one, without, leastPipelineGain))
        chosen.emplace(place, one), isBest = true;
    if (isBest && !found.empty()) decision.pricedPipelines = std::move(found);
  }
  if (!chosen && options.slices > 1)
    throw Error::unsupported("--pipeline {}: {}{}", options.slices, rejection,
                             nearestSlices(context, options, decision, places));
  decision.pricedPipelines.insert(decision.pricedPipelines.begin(), without);
  if (!chosen) return;
  decision.chosen = places[chosen->first].variant;
  decision.chosenPath = places[chosen->first].path;
  decision.chunks = chosen->second.chunks;
  decision.isPipelined = decision.concurrent = true;
  decision.pricedChunkings.clear();
  decision.freeWorkspaceBytes = 0;
  decision.tradedShare = 0, decision.tradedBytes = 0;
}

std::string pipelineLine(const Decision &decision) {
  if (decision.pricedPipelines.empty()) return "";
  std::vector<std::string> texts;
  for (const PricedChunking &one : decision.pricedPipelines) texts.push_back(described(one));
  if (decision.pricedPipelines.size() == 1)
    return fmt::format("--pipeline: no number of slices runs; as one graph {}", texts.front());
  const PricedChunking &without = decision.pricedPipelines.front();
  const auto slices =
      std::ranges::subrange(decision.pricedPipelines.begin() + 1, decision.pricedPipelines.end());
  const auto isUnmeasured = [&](const PricedChunking &one) {
    return without.isMeasured && !one.isMeasured &&
           one.seconds < (1 - leastPipelineGain) * without.seconds;
  };
  const auto isBelow = [&](const PricedChunking &one) { return isFaster(one, without); };
  std::string why;
  if (!decision.isPipelined && std::ranges::any_of(slices, isUnmeasured))
    why = "; slices are not measured, --measure compares them";
  else if (!decision.isPipelined && std::ranges::any_of(slices, isBelow))
    why = fmt::format("; slices are taken from a gain of {}% on", leastPipelineGain * 100);
  return fmt::format("--pipeline: predicted as one graph: {}{}", fmt::join(texts, ", "), why);
}

}  // namespace weft::decision
