// Chunking by time and memory; see ChunkChoice.h.
#include "passes/decide/ChunkChoice.h"

#include "kernel/Error.h"
#include "passes/decide/FrameworkMemory.h"
#include "passes/decide/PathPlan.h"
#include "plan/GraphPrediction.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace weft::decision {
namespace {

/// Slower than the fastest by this share: more chunks only start more kernels.
constexpr double hopeless = 0.25;

/// Runners-up are known for the best path: other paths have those of the steps that they share with
/// it.
void takeRunnersUp(select::SelectionResult &path, const select::SelectionResult &best) {
  for (select::Step &step : path.steps)
    for (const select::Step &known : best.steps)
      if (known.candidate == step.candidate && known.tensor == step.tensor &&
          known.configuration == step.configuration)
        step.runnerUp = known.runnerUp, step.runnerUpLoss = known.runnerUpLoss;
}

}  // namespace

std::vector<NearBestPath> nearBestPaths(const Options &options, const Decision &decision) {
  std::vector<NearBestPath> places;
  const double limit = decision.best().selection.best().seconds * (1 + comparedPaths.within);
  for (size_t variant = 0; variant < decision.variants.size(); ++variant)
    for (select::SelectionResult &path :
         decision.variants[variant].selection.kBest(options.alternatives))
      if (path.seconds <= limit) {
        takeRunnersUp(path, decision.variants[variant].selection.best());
        places.push_back({.variant = variant, .path = std::move(path)});
      }
  std::ranges::stable_sort(places, {},
                           [](const NearBestPath &place) { return place.path.seconds; });
  if (places.size() > size_t(comparedPaths.plans)) places.resize(size_t(comparedPaths.plans));
  return places;
}

bool isMeasured(const PlannedKernels &planned) {
  return std::ranges::all_of(planned.kernels, [](const ChosenKernel &kernel) {
    return kernel.cost.measured || kernel.configuration.knobs.isView();
  });
}

namespace {

/// What any plan may take: variants of one graph have one limit, also where one of them has its
/// softmax in pieces.
double freeWorkspace(const Device &device, const Decision &decision) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const SelectedVariant &variant : decision.variants)
    least = std::min(least, frameworkWorkspaceBytes(variant.selection.problem()));
  return std::max(device.l2Bytes, double(least));
}

/// The numbers of chunks nearest to one that no plan takes: the next below and the next above that
/// a plan of these paths takes. "" where none does.
std::string nearestCounts(const PlanContext &context, const Decision &decision,
                          const std::vector<NearBestPath> &places, int asked) {
  constexpr int most = 64;  // the largest that is ever weighed
  std::vector<PathPlans> plansOf;
  for (const NearBestPath &place : places)
    plansOf.emplace_back(context, decision.variants[place.variant], place.path);
  const auto isTaken = [&](int count) {
    return std::ranges::any_of(plansOf, [&](const PathPlans &plans) {
      return plans.in(count, decision.concurrent).has_value();
    });
  };
  std::vector<std::string> nearest;
  for (int below = std::min(asked - 1, most); below > 1 && nearest.empty(); --below)
    if (isTaken(below)) nearest.push_back(fmt::format("--chunks {}", below));
  for (int above = asked + 1; above <= most; ++above)
    if (isTaken(above)) {
      nearest.push_back(fmt::format("--chunks {}", above));
      break;
    }
  return nearest.empty() ? "; --chunks 1 computes it as a whole"
                         : fmt::format("; legal and nearest: {}", fmt::join(nearest, ", "));
}

}  // namespace

std::vector<int> chunkCounts(const Options &options) {
  if (options.chunks > 0) return {options.chunks};
  return {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64};
}

std::vector<PricedChunking> pricedChunkings(const PlanContext &context, const Options &options,
                                            const SelectedVariant &variant,
                                            const select::SelectionResult &path,
                                            std::string &rejection) {
  std::vector<PricedChunking> priced;
  const PathPlans plans(context, variant, path);
  double fastest = std::numeric_limits<double>::infinity();
  for (const int count : chunkCounts(options)) {
    if (!priced.empty() &&
        priced.back().seconds > (1 + std::max(hopeless, options.memoryTrade)) * fastest)
      break;
    const Expected<PlannedKernels> planned = plans.in(count, options.isConcurrent());
    if (!planned) {
      if (rejection.empty()) rejection = planned.error().what();
      continue;
    }
    const Plan &plan = planned->plan;
    const double seconds = predictGraph(plan, context.prices->device()).seconds();
    fastest = std::min(fastest, seconds);
    priced.push_back({.chunks = count,
                      .seconds = seconds,
                      .sumSeconds = plan.predictedSeconds,
                      .workspaceBytes = plan.workspaceBytes,
                      .isMeasured = isMeasured(*planned)});
  }
  return priced;
}

size_t preferred(std::span<const PricedChunking> priced, double freeBytes, double trade) {
  const bool needsMeasurements = std::ranges::any_of(priced, &PricedChunking::isMeasured);
  double fastest = std::numeric_limits<double>::infinity();
  for (const PricedChunking &one : priced)
    if (one.isMeasured || !needsMeasurements) fastest = std::min(fastest, one.seconds);
  const auto rank = [&](const PricedChunking &one) {  // slow ones last, then those that are too
                                                      // large by size, then all by time
    const bool isOffered =
        (one.isMeasured || !needsMeasurements) && one.seconds <= fastest * (1 + trade);
    return std::tuple(!isOffered, std::max(double(one.workspaceBytes), freeBytes), one.seconds);
  };
  return size_t(std::ranges::min_element(priced, {}, rank) - priced.begin());
}

void chooseChunks(const PlanContext &context, const Options &options, Decision &decision) {
  const int asked = options.chunks;
  if (asked == 1) return;
  const double freeBytes = freeWorkspace(context.prices->device(), decision);
  if (asked == 0 &&
      double(valueOrThrow(planOf(context, decision.best(), decision.path(), 1, decision.concurrent))
                 .plan.workspaceBytes) <= freeBytes)
    return;
  std::string rejection;
  std::vector<NearBestPath> places;
  std::vector<std::vector<PricedChunking>> pricedAt;
  std::vector<PricedChunking> all;
  std::vector<size_t> placeOf;  // of all
  for (NearBestPath &place : nearBestPaths(options, decision)) {
    std::vector<PricedChunking> priced =
        pricedChunkings(context, options, decision.variants[place.variant], place.path, rejection);
    all.insert(all.end(), priced.begin(), priced.end());
    placeOf.resize(all.size(), places.size());
    places.push_back(std::move(place));
    pricedAt.push_back(std::move(priced));
  }
  if (all.empty())
    throw Error::unsupported("--chunks {}: {}{}", asked, rejection,
                             nearestCounts(context, decision, places, asked));
  const size_t chosen = preferred(all, freeBytes, options.memoryTrade),
               fastest = preferred(all, freeBytes, 0);
  if (all[chosen].seconds > all[fastest].seconds) {
    decision.tradedShare = all[chosen].seconds / all[fastest].seconds - 1;
    decision.tradedBytes = all[fastest].workspaceBytes - all[chosen].workspaceBytes;
  }
  decision.pricedChunkings = std::move(pricedAt[placeOf[chosen]]);
  decision.freeWorkspaceBytes = freeBytes;
  decision.chunks = all[chosen].chunks;
  decision.chosen = places[placeOf[chosen]].variant;
  decision.chosenPath = std::move(places[placeOf[chosen]].path);
}

}  // namespace weft::decision
