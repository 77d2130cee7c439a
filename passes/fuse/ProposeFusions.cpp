// Fusion by iteration spaces, to a fixed point. Rules `default`: a worklist of op sets starts with each op alone; every set
// is offered its neighbours (producers, consumers, readers of a common tensor) one at a time, and an accepted union joins the
// worklist; maximal sets that nothing connects are then merged when they run over one iteration space. Rules `paper`: groups
// start with each op alone and are merged for good, in the order of the ops, until nothing merges. Every union is tried once
// and leaves one record, so the records of a graph are a function of the graph and the options alone.
#include "kernel/Error.h"
#include "passes/fuse/Fusion.h"
#include "passes/fuse/Reachability.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <optional>

namespace weft {
namespace {

using OpSet = std::vector<int>;  ///< op indices, ascending

struct Rejection {
  ReasonCode code;
  std::string detail;
};

OpSet unite(const OpSet &a, const OpSet &b) {
  OpSet result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

bool contains(const OpSet &set, int op) { return std::binary_search(set.begin(), set.end(), op); }

bool sharesTensor(const std::vector<int> &a, const std::vector<int> &b) {
  return std::any_of(a.begin(), a.end(), [&](int tensor) { return std::find(b.begin(), b.end(), tensor) != b.end(); });
}

std::string joinNames(const Kernel &kernel, const std::set<int> &axes) {
  std::string text;
  for (int axis : axes)
    text += (text.empty() ? "" : ",") + kernel.axes[axis].name;
  return text.empty() ? "nothing" : text;
}

class Proposer {
public:
  Proposer(const Dataflow &flow, const FuseOptions &options) : flow(flow), options(options), reachability(flow) {}

  FusionResult run() {
    if (options.rules != FuseRules::paper || !options.forced.empty()) {
      grow();
      mergeLaunches();
    }
    if (options.rules == FuseRules::paper)
      partition();
    return result();
  }

private:
  // --- search ---

  void grow() {
    std::deque<OpSet> work;
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      work.push_back({op});
    while (!work.empty()) {
      const OpSet set = std::move(work.front());
      work.pop_front();
      for (int neighbour : neighbours(set))
        if (std::optional<OpSet> grown = attempt(set, {neighbour}))
          work.push_back(std::move(*grown));
    }
  }

  std::set<int> neighbours(const OpSet &set) const {
    std::set<int> found;
    for (int op : set) {
      for (int tensor : flow.ops[op].operands) {
        if (flow.tensors[tensor].producer >= 0)
          found.insert(flow.tensors[tensor].producer);
        found.insert(flow.tensors[tensor].consumers.begin(), flow.tensors[tensor].consumers.end());
      }
      for (int tensor : flow.ops[op].results)
        found.insert(flow.tensors[tensor].consumers.begin(), flow.tensors[tensor].consumers.end());
    }
    for (int op : set)
      found.erase(op);
    return found;
  }

  /// Pattern launch-merging: maximal sets, pairwise, until nothing merges any more.
  void mergeLaunches() {
    std::vector<OpSet> groups = maximalSets();
    std::deque<OpSet> work(groups.begin(), groups.end());
    while (!work.empty()) {
      const OpSet set = std::move(work.front());
      work.pop_front();
      for (const OpSet &other : groups)
        if (areIndependent(set, other))
          if (std::optional<OpSet> merged = attempt(set, other))
            work.push_back(std::move(*merged));
    }
  }

  /// Rules `paper`: "we fuse two adjacent operators whenever we detect these patterns and continue until we cannot fuse
  /// further". An op that fits two groups goes to the one that comes first, so the groups are disjoint.
  void partition() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      groups.push_back({op});
    while (mergeNeighbours() || mergeSiblings()) {
    }
  }

  bool mergeNeighbours() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      for (int neighbour : neighbours({op})) {
        if (neighbour > op)
          break;
        if (opForbids(op) || opForbids(neighbour))
          attempt({neighbour}, {op});
        else if (mergeGroups(groupOf(neighbour), groupOf(op)))
          return true;
      }
    return false;
  }

  /// Pattern launch-merging: biases of stackable projections, their gradients.
  bool mergeSiblings() {
    for (size_t i = 0; i < groups.size(); ++i)
      for (size_t j = i + 1; j < groups.size(); ++j)
        if (areSiblings(groups[i], groups[j]) && areIndependent(groups[i], groups[j]) && mergeGroups(i, j))
          return true;
    return false;
  }

  size_t groupOf(int op) const {
    return std::find_if(groups.begin(), groups.end(), [&](const OpSet &group) { return contains(group, op); }) - groups.begin();
  }

  bool mergeGroups(size_t first, size_t second) {
    if (first == second)
      return false;
    const OpSet both = unite(groups[first], groups[second]);
    attempt(groups[first], groups[second]);
    if (!accepted.contains(both))
      return false;
    groups[std::min(first, second)] = both;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(std::max(first, second)));
    return true;
  }

  /// An op outside the set on a path between two of its ops that may lead through whole groups.
  std::optional<int> opBetweenGroups(const OpSet &both) const {
    std::set<int> reached(both.begin(), both.end());
    std::vector<int> open = both;
    while (!open.empty()) {
      const int op = open.back();
      open.pop_back();
      for (int tensor : flow.ops[op].results)
        for (int consumer : flow.tensors[tensor].consumers) {
          if (contains(both, consumer) && !contains(both, op))
            return op;
          if (!contains(both, consumer))
            for (int member : groups[groupOf(consumer)])
              if (reached.insert(member).second)
                open.push_back(member);
        }
    }
    return std::nullopt;
  }

  /// Whether the sets stand beside contractions that read one tensor: the projections of one input are siblings, and so
  /// are their gradients with respect to the weights.
  bool areSiblings(const OpSet &a, const OpSet &b) const {
    const std::set<int> left = readByContractionsBeside(a), right = readByContractionsBeside(b);
    return std::any_of(left.begin(), left.end(), [&](int tensor) { return right.contains(tensor); });
  }

  std::set<int> readByContractionsBeside(const OpSet &set) const {
    std::set<int> read;
    const auto add = [&](int op) {
      if (op >= 0 && flow.ops[op].operatorClass == OperatorClass::contraction)
        read.insert(flow.ops[op].operands.begin(), flow.ops[op].operands.end());
    };
    for (int op : set) {
      for (int tensor : flow.ops[op].operands)
        add(flow.tensors[tensor].producer);
      for (const std::vector<int> *tensors : {&flow.ops[op].operands, &flow.ops[op].results})
        for (int tensor : *tensors)
          for (int consumer : flow.tensors[tensor].consumers)
            add(consumer);
    }
    return read;
  }

  bool areIndependent(const OpSet &a, const OpSet &b) const {
    for (int x : a)
      for (int y : b)
        if (x == y || reachability.reaches(x, y) || reachability.reaches(y, x) ||
            sharesTensor(flow.ops[x].operands, flow.ops[y].operands))
          return false;
    return true;
  }

  /// Eligible ops alone and accepted sets, without those inside a larger accepted set.
  std::vector<OpSet> maximalSets() const {
    std::vector<OpSet> sets;
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      if (!opForbids(op))
        sets.push_back({op});
    sets.insert(sets.end(), accepted.begin(), accepted.end());
    std::vector<OpSet> maximal;
    for (const OpSet &set : sets)
      if (!isInsideAnother(set))
        maximal.push_back(set);
    return maximal;
  }

  bool isInsideAnother(const OpSet &set) const {
    return std::any_of(accepted.begin(), accepted.end(), [&](const OpSet &other) {
      return other.size() > set.size() && std::includes(other.begin(), other.end(), set.begin(), set.end());
    });
  }

  /// Tries a union once; the union if it is a new candidate.
  std::optional<OpSet> attempt(const OpSet &a, const OpSet &b) {
    OpSet both = unite(a, b);
    if (!tried.insert(both).second)
      return std::nullopt;
    const std::optional<Rejection> rejection = reject(a, b, both);
    if (rejection && both.size() > 2 && opForbids(b.front()))
      return std::nullopt;  // the pair of the two neighbouring ops has the record already
    record(both, rejection);
    if (rejection)
      return std::nullopt;
    accepted.insert(both);
    return both;
  }

  // --- rules, cheapest first ---

  std::optional<Rejection> reject(const OpSet &a, const OpSet &b, const OpSet &both) const {
    for (int op : both)
      if (std::optional<ReasonCode> code = opForbids(op))
        return Rejection{*code, flow.ops[op].label};
    if (options.rules == FuseRules::none && options.forced.empty())
      return Rejection{reasons::rulesNone, ""};
    if (std::optional<std::string> pair = forbiddenPair(both))
      return Rejection{reasons::forbiddenByOption, *pair};
    if (static_cast<int>(both.size()) > options.maxOps)
      return Rejection{reasons::candidateBound, std::to_string(options.maxOps) + " ops"};
    if (static_cast<int>(accepted.size()) >= options.maxCandidates)
      return Rejection{reasons::candidateBound, std::to_string(options.maxCandidates) + " candidates"};
    if (std::optional<Rejection> passes = rejectPasses(both))
      return passes;
    if (std::optional<int> between = groups.empty() ? reachability.opBetween(both) : opBetweenGroups(both))
      return Rejection{reasons::wouldCreateCycle, flow.ops[*between].label};
    if (std::optional<Rejection> access = rejectAccess(both))
      return access;
    return rejectSpaces(a, b, both);
  }

  /// Why no candidate of several ops may hold this op.
  std::optional<ReasonCode> opForbids(int op) const {
    const FlowOp &flowOp = flow.ops[op];
    if (flowOp.region)
      return reasons::alreadyFused;
    if (flowOp.operatorClass == OperatorClass::contraction)
      return options.rules == FuseRules::paper ? reasons::contractionRule : reasons::contractionEpilogueOff;
    if (flowOp.operatorClass == OperatorClass::movement)
      return reasons::movementOp;
    return std::nullopt;
  }

  bool isForced(const OpSet &set) const { return holdsPair(set, options.forced).has_value(); }

  std::optional<std::pair<int, int>> holdsPair(const OpSet &set, const std::set<std::pair<int, int>> &pairs) const {
    const auto holds = [&](int number) {
      return std::any_of(set.begin(), set.end(), [&](int op) { return flow.ops[op].number == number; });
    };
    for (const auto &pair : pairs)
      if (holds(pair.first) && holds(pair.second))
        return pair;
    return std::nullopt;
  }

  std::optional<std::string> forbiddenPair(const OpSet &set) const {
    if (const auto pair = holdsPair(set, options.forbidden))
      return fmt::format("{},{}", pair->first, pair->second);
    return std::nullopt;
  }

  /// Entry points of a plan are called one by one: no kernel belongs to two.
  std::optional<Rejection> rejectPasses(const OpSet &both) const {
    const auto entryOf = [&](int op) { return flow.ops[op].entry; };
    const auto [first, last] = std::ranges::minmax_element(both, {}, entryOf);
    if (entryOf(*first) == entryOf(*last))
      return std::nullopt;
    return Rejection{reasons::forwardAndBackward, flow.ops[*first].label + ", " + flow.ops[*last].label};
  }

  std::optional<Rejection> rejectAccess(const OpSet &both) const {
    const auto reduces = [&](int op) { return !flow.ops[op].reduced.empty(); };
    for (int op : both)
      if (flow.ops[op].reducesTiles && std::count_if(both.begin(), both.end(), reduces) > 1)
        return Rejection{reasons::subVectorAccess, flow.ops[op].label};
    for (int op : both)
      if (flow.ops[op].readsPartner)
        for (int tensor : flow.ops[op].operands)
          if (const int producer = flow.tensors[tensor].producer; producer >= 0 && contains(both, producer))
            return Rejection{reasons::partnerAccess, flow.tensors[tensor].name};
    return std::nullopt;
  }

  /// Iteration spaces of the two sides in the axes of their common kernel.
  std::optional<Rejection> rejectSpaces(const OpSet &a, const OpSet &b, const OpSet &both) const {
    BoundKernel bound;
    try {
      bound = bindKernel(flow, both);
    } catch (const Error &error) {
      return Rejection{reasons::accessTwice, error.what()};
    }
    const auto spaceOf = [&](const OpSet &side) {
      std::optional<AxisSets> space;
      for (size_t i = 0; i < both.size(); ++i)
        if (contains(side, both[i]))
          space = space ? weft::unite(*space, bound.spaces[i]) : bound.spaces[i];
      return *space;
    };
    const AxisSets left = spaceOf(a), right = spaceOf(b);
    const FusionVerdict verdict = canFuse(left, right);
    if (verdict.fusability == Fusability::equal || verdict.fusability == Fusability::oneReduction)
      return std::nullopt;
    return explainSpaces(a, b, bound.kernel, left, right);
  }

  Rejection explainSpaces(const OpSet &a, const OpSet &b, const Kernel &kernel, const AxisSets &left,
                          const AxisSets &right) const {
    if (!left.reduced.empty() && !right.reduced.empty() && left.reduced != right.reduced)
      return {reasons::reductionAxisMismatch,
              joinNames(kernel, left.reduced) + " against " + joinNames(kernel, right.reduced)};
    if (areIndependent(a, b))
      if (std::optional<std::string> extents = differingExtents(a, b))
        return {reasons::extentMismatch, *extents};
    return {reasons::spaceMismatch, joinNames(kernel, left.domain()) + " against " + joinNames(kernel, right.domain())};
  }

  /// Independent ops of equal rank: the first axis, by position, whose extents differ.
  std::optional<std::string> differingExtents(const OpSet &a, const OpSet &b) const {
    const auto axesOf = [&](const OpSet &set) { return flow.tensors[flow.ops[set.front()].results.front()].axes; };
    const std::vector<Axis> left = axesOf(a), right = axesOf(b);
    if (left.size() != right.size())
      return std::nullopt;
    for (size_t i = 0; i < left.size(); ++i)
      if (left[i].extent != right[i].extent)
        return fmt::format("{}={} against {}={}", left[i].name, left[i].extent, right[i].name, right[i].extent);
    return std::nullopt;
  }

  // --- results ---

  /// The structural patterns between the ops of a set, in the order of the paper's list, joined by " + ".
  std::string patternOf(const OpSet &set) const {
    bool producerConsumer = false, reduction = false, sharedInput = false;
    std::vector<size_t> component(set.size());
    std::iota(component.begin(), component.end(), size_t(0));
    for (size_t j = 0; j < set.size(); ++j)
      for (size_t i = 0; i < j; ++i) {
        const FlowOp &first = flow.ops[set[i]], &second = flow.ops[set[j]];
        const bool feeds = sharesTensor(first.results, second.operands);
        const bool siblings = !feeds && sharesTensor(first.operands, second.operands);
        const bool reduces = !first.reduced.empty() || !second.reduced.empty();
        producerConsumer |= feeds && !reduces;
        reduction |= feeds && reduces;
        sharedInput |= siblings;
        if (feeds || siblings)
          std::replace(component.begin(), component.end(), size_t(component[j]), size_t(component[i]));
      }
    const bool connected = std::all_of(component.begin(), component.end(), [&](size_t c) { return c == component[0]; });
    std::string text;
    const auto add = [&](bool present, std::string_view name) {
      if (present)
        text += (text.empty() ? "" : " + ") + std::string(name);
    };
    add(producerConsumer, "producer-consumer");
    add(reduction, "reduction-consumer");
    add(sharedInput, "shared-input");
    add(!connected, "launch-merging");
    return text;
  }

  void record(const OpSet &set, const std::optional<Rejection> &rejection) {
    FusionRecord entry{.pass = "fuse", .pattern = patternOf(set), .ops = {}, .opNames = {}, .accepted = !rejection,
                       .code = {}, .reason = {}, .detail = {}, .savedBytes = savedBytes(flow, set)};
    for (int op : set) {
      entry.ops.push_back(flow.ops[op].number);
      entry.opNames.push_back(flow.ops[op].name);
    }
    if (rejection) {
      entry.code = rejection->code.code;
      entry.reason = rejection->code.reason;
      entry.detail = rejection->detail;
    }
    records.push_back(std::move(entry));
  }

  /// Rules `none` leave forced fusions only, rules `paper` the groups of the partition.
  bool isKept(const OpSet &set) const {
    return isForced(set) || options.rules == FuseRules::standard ||
           std::find(groups.begin(), groups.end(), set) != groups.end();
  }

  FusionResult result() {
    FusionResult result;
    for (const FlowOp &op : flow.ops)
      result.candidates.push_back({.ops = {op.number}, .pattern = ""});
    std::vector<OpSet> fused(accepted.begin(), accepted.end());
    std::stable_sort(fused.begin(), fused.end(), [](const OpSet &a, const OpSet &b) { return a.size() < b.size(); });
    for (const OpSet &set : fused) {
      if (!isKept(set))
        continue;
      FusionCandidate candidate{.ops = {}, .pattern = patternOf(set)};
      for (int op : set)
        candidate.ops.push_back(flow.ops[op].number);
      result.candidates.push_back(std::move(candidate));
    }
    result.records = std::move(records);
    return result;
  }

  const Dataflow &flow;
  const FuseOptions &options;
  const Reachability reachability;
  std::set<OpSet> tried, accepted;
  std::vector<OpSet> groups;  ///< rules `paper`: disjoint, in the order of their first ops
  std::vector<FusionRecord> records;
};

int64_t traffic(const Dataflow &flow, const FlowOp &op) {
  int64_t bytes = 0;
  for (int tensor : std::set<int>(op.operands.begin(), op.operands.end()))
    bytes += flow.tensors[tensor].bytes();
  for (int tensor : op.results)
    bytes += flow.tensors[tensor].bytes();
  return bytes;
}

}  // namespace

int64_t savedBytes(const Dataflow &flow, const std::vector<int> &ops) {
  const std::set<int> inside(ops.begin(), ops.end());
  int64_t before = 0;
  std::set<int> moved;  // tensors that the fused kernel still reads or writes
  for (int op : inside) {
    const FlowOp &flowOp = flow.ops[op];
    before += traffic(flow, flowOp);
    for (int tensor : flowOp.operands)
      if (!inside.count(flow.tensors[tensor].producer))
        moved.insert(tensor);
    for (int tensor : flowOp.results) {
      const FlowTensor &result = flow.tensors[tensor];
      const bool onlyInside = !result.leaves && !result.consumers.empty() &&
                              std::all_of(result.consumers.begin(), result.consumers.end(),
                                          [&](int consumer) { return inside.count(consumer) != 0; });
      if (!onlyInside)
        moved.insert(tensor);
    }
  }
  for (int tensor : moved)
    before -= flow.tensors[tensor].bytes();
  return before;
}

std::string describe(const FusionRecord &record) {
  if (record.accepted)
    return "accepted";
  return record.code + " " + record.reason + (record.detail.empty() ? "" : " (" + record.detail + ")");
}

FusionResult proposeFusions(const Dataflow &flow, const FuseOptions &options) { return Proposer(flow, options).run(); }

}  // namespace weft
