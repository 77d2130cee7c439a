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

Expected<void> recomputeInParts(const LayeredQuestion &layers) {
  for (size_t part = 0; part < layers.parts; ++part) {
    const std::vector<std::string> names = layers.namesThatSaveMemory(part);
    if (names.empty()) continue;
    if (Expected<void> decided = decidePart(layers, part, layers.askRecomputing(part, names));
        !decided)
      return decided;
  }
  return {};
}

/// `smallest`: the fewest bytes that any plan of the layers was found to take.
Error beyondMemory(const Options &options, int64_t smallest) {
  return Error::unsupported(
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

Expected<Decision> decideLayers(const LayeredQuestion &layers) {
  if (Expected<void> decided = decideParts(layers); !decided)
    return Unexpected(std::move(decided.error()));
  JoinedQuestion whole = layers.join();
  Decision decision = joinedDecision(whole.problem, whole.options, whole.parts);
  int64_t smallest = decision.planned.plan.workspaceBytes;
  const std::optional<int64_t> limit = whole.options.maxMemory;
  if (layers.isTrained && layers.choosesRecomputed && limit && smallest > *limit) {
    if (Expected<void> decided = recomputeInParts(layers); !decided)
      return Unexpected(std::move(decided.error()));
    whole = layers.join();
    decision = joinedDecision(whole.problem, whole.options, whole.parts);
    smallest = std::min(smallest, decision.planned.plan.workspaceBytes);
  }
  if (limit && decision.planned.plan.workspaceBytes > *limit)
    return Unexpected(beyondMemory(whole.options, smallest));
  return decision;
}

}  // namespace weft::decision
