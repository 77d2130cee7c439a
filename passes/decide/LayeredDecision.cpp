// Parts first, then the whole; see LayeredDecision.h.
#include "passes/decide/LayeredDecision.h"

#include "kernel/Error.h"
#include "kernel/Format.h"
#include "plan/GraphPrediction.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace weft::decision {
namespace {

/// Decides a part and hands it to `take`.
Expected<void> decidePart(const LayeredQuestion &layers, size_t part, Question question) {
  if (layers.isTrained) question.options.maxMemory.reset();
  Expected<Decision> decided = decide(question.problem, question.options);
  if (!decided) return Unexpected(std::move(decided.error()));
  layers.take(part, std::move(*decided));
  return {};
}

Expected<void> decideParts(const LayeredQuestion &layers) {
  for (size_t part = 0; part < layers.parts; ++part)
    if (Expected<void> decided = decidePart(layers, part, layers.ask(part)); !decided)
      return decided;
  return {};
}

Expected<void> recomputeInParts(const LayeredQuestion &layers, size_t set) {
  for (size_t part = 0; part < layers.parts; ++part)
    if (Expected<void> decided =
            decidePart(layers, part, layers.askRecomputing(part, layers.namesOf(set, part)));
        !decided)
      return decided;
  return {};
}

/// The whole of the decisions that were taken.
struct Whole {
  JoinedQuestion question;
  Decision decision;
};
Whole joinedWhole(const LayeredQuestion &layers) {
  JoinedQuestion question = layers.join();
  Decision decision = joinedDecision(question.problem, question.options, question.parts);
  return {.question = std::move(question), .decision = std::move(decision)};
}

Expected<Whole> wholeRecomputing(const LayeredQuestion &layers, size_t set) {
  if (Expected<void> decided = recomputeInParts(layers, set); !decided)
    return Unexpected(std::move(decided.error()));
  return joinedWhole(layers);
}

FrontierPoint pointOf(const Whole &whole, size_t index) {
  const Plan &plan = whole.decision.planned.plan;
  const select::Problem &problem = whole.question.problem.variants.front().problem;
  return {
      .seconds = plan.predictedSeconds,
      .graphSeconds = predictGraph(plan, whole.question.problem.context.prices->device()).seconds(),
      .workspaceBytes = plan.workspaceBytes,
      .index = index,
      .variant = problem.name,
      .rewrites = problem.rewrites};
}

/// `smallest`: the fewest bytes that any plan of the layers was found to take.
Error beyondMemory(const Options &options, int64_t smallest) {
  return Error::unsupported(
      "--max-memory {}: the smallest plan of the layers that was found takes {} of workspace; "
      "nearest is --max-memory {}",
      options.maxMemoryText, formatBytes(smallest), smallest);
}

}  // namespace

size_t layersToCompare(size_t layers) {
  constexpr size_t most = 3;
  return std::min(most, layers);
}

size_t chooseCut(const std::vector<CutPlace> &places, int64_t fewestTensors) {
  std::optional<std::tuple<size_t, int64_t, size_t>> best;
  for (size_t index = 0; index < places.size(); ++index) {
    const CutPlace &place = places[index];
    if (place.tensors > fewestTensors + 1) continue;
    const std::tuple rank(place.lost, place.bytes, index);
    if (!best || rank < *best) best = rank;
  }
  return best ? std::get<2>(*best) : 0;
}

Expected<Decision> decideLayers(const LayeredQuestion &layers) {
  if (Expected<void> decided = decideParts(layers); !decided)
    return Unexpected(std::move(decided.error()));
  Whole whole = joinedWhole(layers);
  int64_t smallest = whole.decision.planned.plan.workspaceBytes;
  const std::optional<int64_t> limit = whole.question.options.maxMemory;
  if (!limit || smallest <= *limit) return std::move(whole.decision);
  const Options options = whole.question.options;
  std::optional<std::pair<double, size_t>> best;  // seconds and the set
  const size_t sets = layers.isTrained && layers.choosesRecomputed ? layers.recomputedSets : 0;
  for (size_t set = 0; set < sets; ++set) {
    Expected<Whole> again = wholeRecomputing(layers, set);
    if (!again) return Unexpected(std::move(again.error()));
    const Plan &plan = again->decision.planned.plan;
    smallest = std::min(smallest, plan.workspaceBytes);
    if (plan.workspaceBytes <= *limit && (!best || plan.predictedSeconds < best->first))
      best = {plan.predictedSeconds, set};
  }
  if (!best) return Unexpected(beyondMemory(options, smallest));
  Expected<Whole> chosen = wholeRecomputing(layers, best->second);
  if (!chosen) return Unexpected(std::move(chosen.error()));
  return std::move(chosen->decision);
}

Expected<std::vector<FrontierPoint>> layeredPoints(const LayeredQuestion &layers) {
  if (Expected<void> decided = decideParts(layers); !decided)
    return Unexpected(std::move(decided.error()));
  std::vector<FrontierPoint> points = {pointOf(joinedWhole(layers), 0)};
  const size_t sets = layers.isTrained && layers.choosesRecomputed ? layers.recomputedSets : 0;
  for (size_t set = 0; set < sets; ++set) {
    Expected<Whole> again = wholeRecomputing(layers, set);
    if (!again) return Unexpected(std::move(again.error()));
    points.push_back(pointOf(*again, set + 1));
  }
  return points;
}

}  // namespace weft::decision
