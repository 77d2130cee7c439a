// Order of kernels. Independent kernels must not be permuted, or layers explode. The next kernel contains the lowest
// unfinished op; if that kernel waits for an op outside, the kernels that contain the lowest such op come first. Every
// acyclic partition of the ops has such an order, so no plan is lost.
#include "passes/select/Cover.h"

#include "kernel/Error.h"

#include <algorithm>

namespace weft::select {

Cover::Cover(const Problem &problem, const Prices &prices) : problem(problem), prices(prices) {
  findDependencies();
  openLayers();
  findBounds();
}

void Cover::findDependencies() {
  const size_t count = problem.ops.size();
  if (count > OpSet::capacity)
    throw Error::unsupported("'{}' has {} ops; selection takes up to {}", problem.name, count, OpSet::capacity);
  ancestors.resize(count);
  consumers.resize(problem.tensors.size());
  producers.resize(problem.tensors.size(), -1);
  for (size_t op = 0; op < count; ++op) {
    for (int tensor : problem.opInputs[op]) {
      consumers[static_cast<size_t>(tensor)].insert(static_cast<int>(op));
      const int before = producers[static_cast<size_t>(tensor)];
      if (before < 0) continue;
      ancestors[op] = ancestors[op] | ancestors[static_cast<size_t>(before)];
      ancestors[op].insert(before);
    }
    for (int tensor : problem.opOutputs[op]) producers[static_cast<size_t>(tensor)] = static_cast<int>(op);
  }
  for (const Candidate &candidate : problem.candidates) {
    const OpSet own(candidate.ops);
    OpSet needed;
    for (int op : candidate.ops) needed = needed | ancestors[static_cast<size_t>(op)];
    opsOf.push_back(own);
    needs.push_back(needed - own);
  }
  candidatesOf.resize(count);
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (prices.isUsable(static_cast<int>(c)))
      for (int op : problem.candidates[c].ops) candidatesOf[static_cast<size_t>(op)].push_back(static_cast<int>(c));
}

void Cover::openLayers() {
  std::map<std::pair<int, OpSet>, std::vector<std::pair<int, OpSet>>> waiting = {{{0, OpSet()}, {}}};
  std::vector<std::vector<std::pair<int, OpSet>>> targets;
  std::map<OpSet, int> numberOf;
  // Kernels finish at least one op, so a set is complete with its ways in before it is taken out.
  for (; !waiting.empty(); waiting.erase(waiting.begin())) {
    const OpSet finished = waiting.begin()->first.second;
    numberOf[finished] = static_cast<int>(all.size());
    all.push_back(openLayer(finished));
    targets.emplace_back();
    if (isComplete(all.back())) continue;
    for (int candidate : nextCandidates(finished)) {
      const OpSet target = finished | opsOf[static_cast<size_t>(candidate)];
      targets.back().emplace_back(candidate, target);
      waiting.try_emplace({target.size(), target});
    }
  }
  for (size_t layer = 0; layer < all.size(); ++layer)
    for (const auto &[candidate, target] : targets[layer]) all[layer].next.push_back({candidate, numberOf.at(target)});
}

void Cover::findBounds() {
  for (auto layer = all.rbegin(); layer != all.rend(); ++layer) {
    if (isComplete(*layer)) layer->after = 0;
    for (const Transition &transition : layer->next)
      layer->after = std::min(layer->after, prices.candidate(transition.candidate).bestSeconds +
                                                all[static_cast<size_t>(transition.target)].after);
  }
}

bool Cover::isLive(int tensor, const OpSet &finished) const {
  const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
  const int producer = producers[static_cast<size_t>(tensor)];
  if (producer >= 0 ? !finished.contains(producer) : !facts.isArgument) return false;
  return facts.isResult || !finished.containsAll(consumers[static_cast<size_t>(tensor)]);
}

bool Cover::isTemporary(int tensor) const {
  const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
  return !facts.isArgument && !facts.isResult && !prices.isFreeToPack(tensor);
}

Layer Cover::openLayer(const OpSet &finished) const {
  Layer layer{.finished = finished};
  for (int tensor = 0; tensor < static_cast<int>(problem.tensors.size()); ++tensor) {
    if (!isLive(tensor, finished) || prices.isFreeToPack(tensor)) continue;
    if (prices.layouts(tensor).size() > 1) layer.tracked.push_back(tensor);
    else if (isTemporary(tensor)) layer.untrackedBytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
  }
  return layer;
}

/// Candidates that may come next (see the head of the file).
std::vector<int> Cover::nextCandidates(const OpSet &finished) const {
  std::set<int> next;
  const OpSet unfinished = OpSet::firstOps(static_cast<int>(problem.ops.size())) - finished;
  collect(finished, unfinished.lowest(), {}, next);
  return {next.begin(), next.end()};
}

/// Candidates with `op` outside `reserved`: those that are ready, else what they wait for.
void Cover::collect(const OpSet &finished, int op, const OpSet &reserved, std::set<int> &next) const {
  if (reserved.contains(op)) return;  // waits for itself: not convex
  for (int candidate : candidatesOf[static_cast<size_t>(op)]) {
    const OpSet &own = opsOf[static_cast<size_t>(candidate)];
    if (own.intersects(finished) || own.intersects(reserved)) continue;
    const OpSet missing = needs[static_cast<size_t>(candidate)] - finished;
    if (missing.isEmpty()) next.insert(candidate);
    else collect(finished, missing.lowest(), reserved | own, next);
  }
}

}  // namespace weft::select
