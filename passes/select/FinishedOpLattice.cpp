// Order of kernels. Independent kernels must not be permuted, or layers explode. The next kernel
// contains the first unfinished op; if that kernel waits for an op outside, the kernels that
// contain the first such op come first.
//
// No plan is lost, whatever the order of ops is by which an op is first. Take any partition of the
// ops into kernels that do not wait for each other in a circle, and any set of its kernels that are
// finished. The partition has one kernel with the first unfinished op; while the kernel at hand
// waits, the partition has one with the first op that it waits for, which comes before it and is
// unfinished. Kernels that wait for each other in no circle are not met twice, so this ends at a
// kernel that is ready, and `collect` follows just these steps. So every partition is a path, and
// of its many permutations few. The order is thus chosen by the number of layers that it leads to.
#include "passes/select/FinishedOpLattice.h"

#include "passes/select/OpOrder.h"

#include <algorithm>

namespace weft::select {

FinishedOpLattice::FinishedOpLattice(const Problem &problem, const Prices &prices, int64_t most)
    : problem(problem), prices(prices) {
  findDependencies();
  std::vector<bool> isLeftOut(problem.candidates.size(), false);
  const std::vector<int> dispensable = leastGainFirst();
  for (size_t kept = dispensable.size();; kept /= 2) {
    for (size_t n = 0; n + kept < dispensable.size(); ++n)
      isLeftOut[static_cast<size_t>(dispensable[n])] = true;
    leftOutCount = static_cast<int64_t>(dispensable.size() - kept);
    offer(isLeftOut);
    chooseOrder();
    all.clear();
    if (openLayers(kept == 0 ? std::numeric_limits<int64_t>::max() : most)) break;
  }
  findBounds();
}

/// Fused candidates without which every op of theirs still has a kernel by itself.
std::vector<int> FinishedOpLattice::leastGainFirst() const {
  std::vector<double> alone(problem.ops.size(), infinite);
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (const std::vector<int> &ops = problem.candidates[c].ops;
        ops.size() == 1 && prices.isUsable(static_cast<int>(c)) &&
        prices.isPriced(static_cast<int>(c)))
      alone[static_cast<size_t>(ops.front())] = prices.candidate(static_cast<int>(c)).bestSeconds;
  std::vector<std::pair<double, int>> ranked;
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    const std::vector<int> &ops = problem.candidates[c].ops;
    if (ops.size() < 2 || !prices.isUsable(static_cast<int>(c))) continue;
    double gain = -prices.candidate(static_cast<int>(c)).bestSeconds;
    for (const int op : ops) gain += alone[static_cast<size_t>(op)];
    if (gain < infinite) ranked.emplace_back(gain, static_cast<int>(c));
  }
  std::stable_sort(ranked.begin(), ranked.end());
  std::vector<int> result;
  for (const auto &[gain, candidate] : ranked) result.push_back(candidate);
  return result;
}

void FinishedOpLattice::offer(const std::vector<bool> &isLeftOut) {
  candidatesOf.assign(problem.ops.size(), {});
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (prices.isUsable(static_cast<int>(c)) && !isLeftOut[c])
      for (int op : problem.candidates[c].ops)
        candidatesOf[static_cast<size_t>(op)].push_back(static_cast<int>(c));
}

double FinishedOpLattice::boundOfAll() const {
  std::vector<double> least(problem.ops.size(), infinite);
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    for (const int op : problem.candidates[c].ops)
      if (prices.isUsable(static_cast<int>(c)))
        least[static_cast<size_t>(op)] =
            std::min(least[static_cast<size_t>(op)],
                     prices.candidate(static_cast<int>(c)).bestSeconds /
                         static_cast<double>(problem.candidates[c].ops.size()));
  double sum = 0;
  for (const double seconds : least) sum += seconds;
  return sum;
}

void FinishedOpLattice::findDependencies() {
  const size_t count = problem.ops.size();
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
    for (int tensor : problem.opOutputs[op])
      producers[static_cast<size_t>(tensor)] = static_cast<int>(op);
  }
  for (const Candidate &candidate : problem.candidates) {
    const OpSet own(candidate.ops);
    OpSet needed;
    for (int op : candidate.ops) needed = needed | ancestors[static_cast<size_t>(op)];
    opsOf.push_back(own);
    needs.push_back(needed - own);
  }
}

void FinishedOpLattice::chooseOrder() {
  const size_t count = problem.ops.size();
  std::vector<OpSet> kernels, direct(count);
  std::set<int> offered;
  for (const std::vector<int> &candidates : candidatesOf)
    offered.insert(candidates.begin(), candidates.end());
  for (const int candidate : offered) kernels.push_back(opsOf[static_cast<size_t>(candidate)]);
  for (size_t op = 0; op < count; ++op)
    for (int tensor : problem.opInputs[op])
      if (const int producer = producers[static_cast<size_t>(tensor)]; producer >= 0)
        direct[op].insert(producer);
  order = compactOrder(kernels, direct);
}

/// False as soon as what it holds takes more than `most` bytes.
bool FinishedOpLattice::openLayers(int64_t most) {
  const int64_t bytesOfSet =
      static_cast<int64_t>(OpSet::firstOps(static_cast<int>(problem.ops.size())).bytes());
  const int64_t bytesOfLayer = 3 * bytesOfSet + int64_t(sizeof(Layer)) + 200,
                bytesOfWay = bytesOfSet + int64_t(sizeof(int) + sizeof(Transition));
  constexpr int64_t bytesOfTracked =
      int64_t(sizeof(int) + sizeof(double) * maximumLayouts);  // a sum each (LagrangianBound.h)
  int64_t bytes = 0;
  // Candidates and what is finished after them, by layer as they are numbered. Kernels finish at
  // least one op, so a set has all its ways in before it is looked at.
  std::map<std::pair<int, OpSet>, std::vector<std::pair<int, OpSet>>> ways = {{{0, OpSet()}, {}}};
  std::map<OpSet, int> numberOf;
  for (auto &[key, next] : ways) {
    const OpSet &finished = key.second;
    numberOf[finished] = static_cast<int>(all.size());
    all.push_back(openLayer(finished));
    bytes += bytesOfLayer + bytesOfTracked * static_cast<int64_t>(all.back().tracked.size());
    if (bytes > most) return false;
    if (isComplete(all.back())) continue;
    for (int candidate : nextCandidates(finished)) {
      bytes += bytesOfWay;
      const OpSet target = finished | opsOf[static_cast<size_t>(candidate)];
      next.emplace_back(candidate, target);
      ways.try_emplace({target.size(), target});
    }
  }
  auto layer = all.begin();
  for (const auto &[key, next] : ways) {
    for (const auto &[candidate, target] : next)
      layer->next.push_back({candidate, numberOf.at(target)});
    ++layer;
  }
  return true;
}

void FinishedOpLattice::findBounds() {
  for (auto layer = all.rbegin(); layer != all.rend(); ++layer) {
    if (isComplete(*layer)) layer->after = 0;
    for (const Transition &transition : layer->next)
      layer->after = std::min(layer->after, prices.candidate(transition.candidate).bestSeconds +
                                                all[static_cast<size_t>(transition.target)].after);
  }
}

bool FinishedOpLattice::isLive(int tensor, const OpSet &finished) const {
  const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
  const int producer = producers[static_cast<size_t>(tensor)];
  if (producer >= 0 ? !finished.contains(producer) : !facts.isArgument) return false;
  return facts.isResult || !finished.containsAll(consumers[static_cast<size_t>(tensor)]);
}

bool FinishedOpLattice::isTemporary(int tensor) const {
  const Tensor &facts = problem.tensors[static_cast<size_t>(tensor)];
  return !facts.isArgument && !facts.isResult && !prices.isFreeToPack(tensor);
}

Layer FinishedOpLattice::openLayer(const OpSet &finished) const {
  Layer layer{.finished = finished};
  for (int tensor = 0; tensor < static_cast<int>(problem.tensors.size()); ++tensor) {
    if (!isLive(tensor, finished) || prices.isFreeToPack(tensor)) continue;
    if (prices.layouts(tensor).size() > 1) layer.tracked.push_back(tensor);
    else if (isTemporary(tensor))
      layer.untrackedBytes += problem.tensors[static_cast<size_t>(tensor)].bytes();
  }
  return layer;
}

/// The first in the order; -1 if there is none.
int FinishedOpLattice::firstOf(const OpSet &ops) const {
  const auto first =
      std::find_if(order.begin(), order.end(), [&](int op) { return ops.contains(op); });
  return first == order.end() ? -1 : *first;
}

/// Candidates that may come next (see the head of the file).
std::vector<int> FinishedOpLattice::nextCandidates(const OpSet &finished) const {
  std::set<int> next;
  const OpSet unfinished = OpSet::firstOps(static_cast<int>(problem.ops.size())) - finished;
  collect(finished, firstOf(unfinished), {}, next);
  return {next.begin(), next.end()};
}

/// Candidates with `op` outside `reserved`: those that are ready, else what they wait for.
void FinishedOpLattice::collect(const OpSet &finished, int op, const OpSet &reserved,
                                std::set<int> &next) const {
  if (reserved.contains(op)) return;  // waits for itself: not convex
  for (int candidate : candidatesOf[static_cast<size_t>(op)]) {
    const OpSet &own = opsOf[static_cast<size_t>(candidate)];
    if (own.intersects(finished) || own.intersects(reserved)) continue;
    const OpSet missing = needs[static_cast<size_t>(candidate)] - finished;
    if (missing.isEmpty()) next.insert(candidate);
    else collect(finished, firstOf(missing), reserved | own, next);
  }
}

}  // namespace weft::select
