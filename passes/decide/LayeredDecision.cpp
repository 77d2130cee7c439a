// Parts first, then the whole; see LayeredDecision.h.
#include "passes/decide/LayeredDecision.h"

#include "kernel/Error.h"
#include "kernel/Format.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace weft::decision {
namespace {

Decision decidedPart(Question question, bool isTrained) {
  if (isTrained) question.options.maxMemory.reset();
  return valueOrThrow(decide(question.problem, question.options));
}

void recomputeInParts(const LayeredQuestion &layers) {
  for (size_t part = 0; part < layers.parts; ++part)
    if (const std::vector<std::string> names = layers.namesThatSaveMemory(part); !names.empty())
      layers.take(part, decidedPart(layers.askRecomputing(part, names), layers.isTrained));
}

/// Throws Error(unsupported) where the plan takes more than Options::maxMemory; `smallest`: the
/// fewest bytes that any plan of the layers was found to take.
void checkMemory(const Plan &plan, const Options &options, int64_t smallest) {
  if (options.maxMemory && plan.workspaceBytes > *options.maxMemory)
    throw Error::unsupported(
        "--max-memory {}: the smallest plan of the layers that was found takes {} of workspace; "
        "nearest is --max-memory {}",
        options.maxMemoryText, formatBytes(smallest), smallest);
}

}  // namespace

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

Decision decideLayers(const LayeredQuestion &layers) {
  for (size_t part = 0; part < layers.parts; ++part)
    layers.take(part, decidedPart(layers.ask(part), layers.isTrained));
  JoinedQuestion whole = layers.join();
  Decision decision = joinedDecision(whole.problem, whole.options, whole.parts);
  int64_t smallest = decision.planned.plan.workspaceBytes;
  const std::optional<int64_t> limit = whole.options.maxMemory;
  if (layers.isTrained && layers.choosesRecomputed && limit && smallest > *limit) {
    recomputeInParts(layers);
    whole = layers.join();
    decision = joinedDecision(whole.problem, whole.options, whole.parts);
    smallest = std::min(smallest, decision.planned.plan.workspaceBytes);
  }
  checkMemory(decision.planned.plan, whole.options, smallest);
  return decision;
}

}  // namespace weft::decision
