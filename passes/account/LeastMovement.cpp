// A greedy partition by saved bytes; see LeastMovement.h.
#include "passes/account/LeastMovement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace weft {
namespace {

/// A partition of the ops into sets; a set is named by its first op.
class Partition {
public:
  explicit Partition(const Dataflow &flow) : flow(flow), setOf(flow.ops.size()) {
    std::iota(setOf.begin(), setOf.end(), 0);
  }

  /// Merges the ops into one set unless one is taken or the sets would depend on each other.
  bool tryJoin(const std::vector<int> &ops) {
    if (std::any_of(ops.begin(), ops.end(), [&](int op) { return taken.contains(op); }))
      return false;
    const std::vector<int> before = setOf;
    for (const int op : ops) setOf[size_t(op)] = ops.front();
    if (hasCycle()) {
      setOf = before;
      return false;
    }
    taken.insert(ops.begin(), ops.end());
    return true;
  }

  std::vector<std::vector<int>> sets() const {
    std::map<int, std::vector<int>> lists;
    for (size_t op = 0; op < setOf.size(); ++op)
      if (flow.ops[op].operatorClass != OperatorClass::movement || taken.contains(int(op)))
        lists[setOf[op]].push_back(int(op));
    std::vector<std::vector<int>> result;
    for (auto &[first, ops] : lists) result.push_back(std::move(ops));
    return result;
  }

private:
  /// Whether sets depend on each other.
  bool hasCycle() const {
    std::map<int, std::set<int>> waitsFor, isBefore;
    for (size_t op = 0; op < setOf.size(); ++op) {
      waitsFor[setOf[op]];
      for (const int operand : flow.ops[op].operands)
        if (const int producer = flow.tensors[size_t(operand)].producer;
            producer >= 0 && setOf[size_t(producer)] != setOf[op]) {
          waitsFor[setOf[op]].insert(setOf[size_t(producer)]);
          isBefore[setOf[size_t(producer)]].insert(setOf[op]);
        }
    }
    std::vector<int> ready;
    for (const auto &[set, others] : waitsFor)
      if (others.empty()) ready.push_back(set);
    size_t finished = 0;
    for (; !ready.empty(); ++finished) {
      const int set = ready.back();
      ready.pop_back();
      for (const int next : isBefore[set]) {
        waitsFor[next].erase(set);
        if (waitsFor[next].empty()) ready.push_back(next);
      }
    }
    return finished < waitsFor.size();
  }

  const Dataflow &flow;
  std::vector<int> setOf;
  std::set<int> taken;
};

}  // namespace

std::vector<std::vector<int>> leastMovementPartition(const Dataflow &flow,
                                                     const FusionResult &fusions) {
  std::vector<std::pair<int64_t, const FusionCandidate *>> order;
  for (const FusionCandidate &candidate : fusions.candidates)
    if (candidate.ops.size() > 1) order.emplace_back(savedBytes(flow, candidate.ops), &candidate);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto &a, const auto &b) { return a.first > b.first; });
  Partition partition(flow);
  for (const auto &[saved, candidate] : order) partition.tryJoin(candidate->ops);
  return partition.sets();
}

}  // namespace weft
