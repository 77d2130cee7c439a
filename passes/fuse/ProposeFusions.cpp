// Fusion by iteration spaces, to a fixed point. Rules `default`: a worklist of op sets starts with
// each op alone; every set is offered its neighbours (producers, consumers, readers of a common
// tensor that is no scalar and no offsets of tokens) one at a time, and an accepted union joins the
// worklist; maximal sets that nothing connects are then merged when they run over one iteration
// space. Rules `paper`:
// groups start with each op alone and are merged for good, in the order of the ops, until nothing
// merges. Every union is tried once and leaves one record, up to the first that the bound on
// candidates turns away, so the records of a graph are a function of the graph and the options
// alone. Contractions are not part of that search: Epilogues.cpp, Prologues.cpp, Attentions.cpp and
// AttentionBackwards.cpp have theirs. Nor are appends, whose iteration space is that of the tokens
// (Appends.cpp).
//
// A graph with more connected sets than may become candidates (hundreds of ops of an optimizer that
// all read its scalars) would get its smallest sets alone. Its search begins anew with whole
// kernels: each op is joined by the neighbour that saves most, again and again.
#include "kernel/Append.h"
#include "passes/fuse/Appends.h"
#include "passes/fuse/AttentionBackwards.h"
#include "passes/fuse/Attentions.h"
#include "passes/fuse/Prologues.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>

namespace weft {
namespace {

class Proposer {
public:
  Proposer(const Dataflow &flow, const FuseOptions &options, bool beginsWhole)
      : flow(flow), options(options), rules(flow, options), beginsWhole(beginsWhole) {}

  bool isFull() const {
    return static_cast<int>(accepted.size()) >= options.maxCandidates ||
           recordBytes >= options.maxRecordBytes;
  }

  FusionResult run() {
    if (options.rules != FuseRules::paper) {
      fuseIntoContractions();
      takeAttempts(proposeAppends(flow, rules));
    }
    if (options.rules != FuseRules::paper || !options.forced.empty()) {
      if (beginsWhole) growWhole();
      grow();
      mergeLaunches();
    }
    if (options.rules == FuseRules::paper) partition();
    return result();
  }

private:
  // --- search ---

  void fuseIntoContractions() {
    const std::vector<EpilogueAttempt> epilogues = options.epilogueRejection
                                                       ? proposeEpilogues(flow, options, rules)
                                                       : std::vector<EpilogueAttempt>{};
    takeAttempts(epilogues);
    if (options.prologueRejection) takeAttempts(proposePrologues(flow, options, rules, epilogues));
    if (options.attentionRejection) takeAttempts(proposeAttentions(flow, options, rules));
    if (options.attentionBackwardRejection)
      takeAttempts(proposeAttentionBackwards(flow, options, rules));
  }

  void takeAttempts(const std::vector<EpilogueAttempt> &attempts) {
    for (const EpilogueAttempt &attempt : attempts) {
      tried.insert(attempt.ops);
      record(attempt.ops, attempt.rejection);
      if (!attempt.rejection) withContraction.push_back(attempt.ops);
    }
  }

  void grow() {
    std::deque<OpSet> work;
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op) work.push_back({op});
    while (!work.empty()) {
      const OpSet set = std::move(work.front());
      work.pop_front();
      for (int neighbour : neighbours(set))
        if (std::optional<OpSet> grown = attempt(set, {neighbour}))
          work.push_back(std::move(*grown));
    }
  }

  /// Kernels as large as they pay, and the sets on the way to them; each op that is in none yet
  /// begins one.
  void growWhole() {
    std::set<int> taken;
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op) {
      if (taken.contains(op)) continue;
      OpSet set = {op};
      while (std::optional<OpSet> grown = joinedByBest(set)) set = std::move(*grown);
      taken.insert(set.begin(), set.end());
    }
  }

  /// With the neighbour that saves most, if that is as much as the largest of the neighbour's
  /// results.
  std::optional<OpSet> joinedByBest(const OpSet &set) {
    const int64_t before = savedBytes(flow, set);
    std::vector<std::pair<int64_t, int>> ranked;  // minus the bytes saved, neighbour
    for (int neighbour : neighbours(set)) {
      int64_t largest = 0;
      for (int tensor : flow.ops[neighbour].results)
        largest = std::max(largest, flow.tensors[tensor].bytes());
      const int64_t gain = savedBytes(flow, unite(set, {neighbour})) - before;
      if (gain >= largest) ranked.emplace_back(-gain, neighbour);
    }
    std::sort(ranked.begin(), ranked.end());
    for (const auto &[gain, neighbour] : ranked) {
      OpSet both = unite(set, {neighbour});
      if (attempt(set, {neighbour}) || accepted.contains(both)) return both;
    }
    return std::nullopt;
  }

  std::set<int> neighbours(const OpSet &set) const {
    std::set<int> found;
    for (int op : set) {
      for (int tensor : flow.ops[op].operands) {
        if (flow.tensors[tensor].producer >= 0) found.insert(flow.tensors[tensor].producer);
        // To read a scalar once, or one element of offsets, saves nothing.
        if (flow.tensors[tensor].axes.empty() || rules.areOffsets(tensor)) continue;
        found.insert(flow.tensors[tensor].consumers.begin(), flow.tensors[tensor].consumers.end());
      }
      for (int tensor : flow.ops[op].results)
        found.insert(flow.tensors[tensor].consumers.begin(), flow.tensors[tensor].consumers.end());
    }
    for (int op : set) found.erase(op);
    return found;
  }

  /// Pattern launch-merging: maximal sets, pairwise, until nothing merges any more. Of sets that
  /// may merge with many others only runs are tried: graphs of several layers have as many sets of
  /// a kind as layers, and every choice of them would be one more candidate.
  void mergeLaunches() {
    const std::vector<OpSet> groups = maximalSets();
    const std::vector<Partners> partners = partnersOf(groups);
    struct Merged {
      OpSet ops;
      std::vector<size_t> groups;  ///< ascending
    };
    std::deque<Merged> work;
    for (size_t group = 0; group < groups.size(); ++group) work.push_back({groups[group], {group}});
    while (!work.empty()) {
      const Merged merged = std::move(work.front());
      work.pop_front();
      for (size_t other = 0; other < groups.size(); ++other) {
        if (!rules.areIndependent(merged.ops, groups[other])) continue;
        std::vector<size_t> numbers = merged.groups;
        numbers.insert(std::ranges::upper_bound(numbers, other), other);
        if (!isTried(numbers, partners) && !rules.isForced(unite(merged.ops, groups[other]))) {
          if (numbers.size() == 2) recordFarApart(merged.ops, groups[other]);
        } else if (std::optional<OpSet> both = attempt(merged.ops, groups[other])) {
          work.push_back({std::move(*both), std::move(numbers)});
        }
      }
    }
  }

  /// The sets that one may share a kernel with.
  struct Partners {
    size_t count = 0;
    std::vector<size_t> behind = {};  ///< ascending
  };

  std::vector<Partners> partnersOf(const std::vector<OpSet> &groups) const {
    std::vector<Partners> partners(groups.size());
    for (size_t group = 0; group < groups.size(); ++group)
      for (size_t other = group + 1; other < groups.size(); ++other) {
        if (!rules.areIndependent(groups[group], groups[other]) ||
            reject(groups[group], groups[other], unite(groups[group], groups[other])))
          continue;
        partners[group].behind.push_back(other);
        ++partners[group].count, ++partners[other].count;
      }
    return partners;
  }

  /// Whether the groups are tried together: those of many partners only with the next of these.
  static bool isTried(const std::vector<size_t> &groups, const std::vector<Partners> &partners) {
    const Partners &first = partners[groups.front()];
    if (std::ranges::none_of(groups,
                             [&](size_t group) { return partners[group].count > mostPartners; }))
      return true;
    return groups.size() <= first.behind.size() + 1 &&
           std::equal(groups.begin() + 1, groups.end(), first.behind.begin());
  }

  void recordFarApart(const OpSet &a, const OpSet &b) {
    const OpSet both = unite(a, b);
    if (!tried.insert(both).second) return;
    std::optional<Rejection> rejection = reject(a, b, both);
    if (!rejection)
      rejection = Rejection{reasons::candidateBound, "one of them may merge with more than " +
                                                         std::to_string(mostPartners) +
                                                         ", so only runs are tried"};
    record(both, rejection);
  }

  /// Rules `paper`: "we fuse two adjacent operators whenever we detect these patterns and continue
  /// until we cannot fuse further". An op that fits two groups goes to the one that comes first, so
  /// the groups are disjoint.
  void partition() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op) groups.push_back({op});
    while (mergeNeighbours() || mergeSiblings()) {}
  }

  bool mergeNeighbours() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      for (int neighbour : neighbours({op})) {
        if (neighbour > op) break;
        if (rules.opForbids(op) || rules.opForbids(neighbour)) attempt({neighbour}, {op});
        else if (mergeGroups(groupOf(neighbour), groupOf(op))) return true;
      }
    return false;
  }

  /// Pattern launch-merging: biases of stackable projections, their gradients.
  bool mergeSiblings() {
    for (size_t i = 0; i < groups.size(); ++i)
      for (size_t j = i + 1; j < groups.size(); ++j)
        if (rules.areSiblings(groups[i], groups[j]) && rules.areIndependent(groups[i], groups[j]) &&
            mergeGroups(i, j))
          return true;
    return false;
  }

  size_t groupOf(int op) const {
    return std::find_if(groups.begin(), groups.end(),
                        [&](const OpSet &group) { return contains(group, op); }) -
           groups.begin();
  }

  bool mergeGroups(size_t first, size_t second) {
    if (first == second) return false;
    const OpSet both = unite(groups[first], groups[second]);
    attempt(groups[first], groups[second]);
    if (!accepted.contains(both)) return false;
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
          if (contains(both, consumer) && !contains(both, op)) return op;
          if (!contains(both, consumer))
            for (int member : groups[groupOf(consumer)])
              if (reached.insert(member).second) open.push_back(member);
        }
    }
    return std::nullopt;
  }

  /// Eligible ops alone and accepted sets, without those inside a larger accepted set.
  std::vector<OpSet> maximalSets() const {
    std::vector<OpSet> sets;
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      if (!rules.opForbids(op)) sets.push_back({op});
    sets.insert(sets.end(), accepted.begin(), accepted.end());
    std::vector<std::vector<const OpSet *>> setsWith(flow.ops.size());  // accepted, by op
    for (const OpSet &set : accepted)
      for (const int op : set) setsWith[size_t(op)].push_back(&set);
    std::vector<OpSet> maximal;
    for (const OpSet &set : sets)
      if (!isInsideOneOf(set, setsWith[size_t(set.front())])) maximal.push_back(set);
    return maximal;
  }

  static bool isInsideOneOf(const OpSet &set, const std::vector<const OpSet *> &others) {
    return std::ranges::any_of(others, [&](const OpSet *other) {
      return other->size() > set.size() && std::ranges::includes(*other, set);
    });
  }

  /// Tries a union once; the union if it is a new candidate.
  std::optional<OpSet> attempt(const OpSet &a, const OpSet &b) {
    OpSet both = unite(a, b);
    if (wasCut && both.size() > 2) return std::nullopt;  // a record says that the search ended
    if (!tried.insert(both).second) return std::nullopt;
    const std::optional<Rejection> rejection = reject(a, b, both);
    if (rejection && both.size() > 2 && rules.opForbids(b.front()))
      return std::nullopt;  // the pair of the two neighbouring ops has the record already
    record(both, rejection);
    wasCut = wasCut || (isFull() && both.size() > 2);
    if (rejection) return std::nullopt;
    accepted.insert(both);
    return both;
  }

  std::optional<Rejection> reject(const OpSet &a, const OpSet &b, const OpSet &both) const {
    if (std::optional<Rejection> ops = rules.rejectOps(both)) return ops;
    if (isFull())
      return Rejection{reasons::candidateBound,
                       std::to_string(options.maxCandidates) + " candidates"};
    if (std::optional<int> between = groups.empty() ? rules.opBetween(both) : opBetweenGroups(both))
      return Rejection{reasons::wouldCreateCycle, flow.ops[*between].label};
    return rules.rejectSpaces(a, b, both);
  }

  // --- results ---

  /// The structural patterns between the ops of a set.
  FusionPatterns patternsOf(const OpSet &set) const {
    FusionPatterns patterns;
    std::vector<size_t> component(set.size());
    std::iota(component.begin(), component.end(), size_t(0));
    for (size_t j = 0; j < set.size(); ++j)
      for (size_t i = 0; i < j; ++i) {
        const FlowOp &first = flow.ops[set[i]], &second = flow.ops[set[j]];
        const bool feeds = sharesTensor(first.results, second.operands);
        const bool siblings = !feeds && sharesTensor(first.operands, second.operands);
        const bool reduces = !first.reduced.empty() || !second.reduced.empty();
        patterns.producerConsumer |= feeds && !reduces;
        patterns.reductionConsumer |= feeds && reduces;
        patterns.sharedInput |= siblings;
        if (feeds || siblings)
          std::replace(component.begin(), component.end(), size_t(component[j]),
                       size_t(component[i]));
      }
    patterns.launchMerging = !std::all_of(component.begin(), component.end(),
                                          [&](size_t c) { return c == component[0]; });
    return patterns;
  }

  void record(const OpSet &set, const std::optional<Rejection> &rejection) {
    FusionRecord entry{.pass = "fuse",
                       .patterns = patternsOf(set),
                       .ops = {},
                       .opNames = {},
                       .accepted = !rejection,
                       .code = {},
                       .reason = {},
                       .detail = {},
                       .savedBytes = savedBytes(flow, set)};
    for (int op : set) {
      entry.ops.push_back(flow.ops[op].number);
      entry.opNames.emplace_back(nameOf(flow.ops[op].kind));
    }
    if (rejection) {
      entry.code = rejection->code.code;
      entry.reason = rejection->code.reason;
      entry.detail = rejection->detail;
      if (rejection->op >= 0) entry.rejectedOp = flow.ops[rejection->op].number;
    }
    recordBytes +=
        static_cast<int64_t>(sizeof entry + entry.reason.size() + entry.detail.size() + 160 +
                             set.size() * (2 * sizeof(int) + sizeof(std::string) + 24));
    records.push_back(std::move(entry));
  }

  /// Rules `none` leave forced fusions only, rules `paper` the groups of the partition.
  bool isKept(const OpSet &set) const {
    return rules.isForced(set) || options.rules == FuseRules::standard ||
           std::find(groups.begin(), groups.end(), set) != groups.end();
  }

  FusionResult result() {
    FusionResult result;
    for (const FlowOp &op : flow.ops)
      result.candidates.push_back({.ops = {op.number}, .patterns = {}});
    std::vector<OpSet> fused(accepted.begin(), accepted.end());
    fused.insert(fused.end(), withContraction.begin(), withContraction.end());
    std::stable_sort(fused.begin(), fused.end(),
                     [](const OpSet &a, const OpSet &b) { return a.size() < b.size(); });
    for (const OpSet &set : fused) {
      if (!isKept(set)) continue;
      FusionCandidate candidate{.ops = {}, .patterns = patternsOf(set)};
      for (int op : set) candidate.ops.push_back(flow.ops[op].number);
      result.candidates.push_back(std::move(candidate));
    }
    result.records = std::move(records);
    result.isCut = wasCut && static_cast<int>(accepted.size()) < FuseOptions().maxCandidates;
    return result;
  }

  static constexpr size_t mostPartners = 5;  ///< as many as single layers have

  const Dataflow &flow;
  const FuseOptions &options;
  const FusionRules rules;
  const bool beginsWhole;
  bool wasCut = false;  ///< at the bound on candidates
  std::set<OpSet> tried, accepted;
  std::vector<OpSet> withContraction;  ///< accepted sets that hold a contraction or an append
  std::vector<OpSet> groups;           ///< rules `paper`: disjoint, in the order of their first ops
  std::vector<FusionRecord> records;
  int64_t recordBytes = 0;  ///< with what remembers that a set was tried
};

/// Whether an append makes the tensor: it lies in a cache, with other readers or without.
bool isInCache(const Dataflow &flow, int tensor) {
  const int producer = flow.tensors[tensor].producer;
  return producer >= 0 && flow.ops[producer].kind == OpKind::append;
}

/// Of an append the tokens that it reads; what it writes, any kernel with it does.
int64_t traffic(const Dataflow &flow, const FlowOp &op) {
  if (op.kind == OpKind::append) return flow.tensors[op.operands[appendedTokens]].bytes();
  int64_t bytes = 0;
  for (int tensor : std::set<int>(op.operands.begin(), op.operands.end()))
    bytes += flow.tensors[tensor].bytes();
  for (int tensor : op.results) bytes += flow.tensors[tensor].bytes();
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
    const bool appends = flowOp.kind == OpKind::append;
    for (int tensor : flowOp.operands)
      if ((!inside.count(flow.tensors[tensor].producer) || isInCache(flow, tensor)) &&
          !(appends && tensor == flowOp.operands[appendedCache]))
        moved.insert(tensor);
    if (appends) continue;
    for (int tensor : flowOp.results) {
      const FlowTensor &result = flow.tensors[tensor];
      const bool onlyInside =
          !result.leaves && !result.consumers.empty() &&
          std::all_of(result.consumers.begin(), result.consumers.end(),
                      [&](int consumer) { return inside.count(consumer) != 0; });
      if (!onlyInside) moved.insert(tensor);
    }
  }
  for (int tensor : moved) before -= flow.tensors[tensor].bytes();
  return before;
}

std::string describe(const FusionRecord &record) {
  if (record.accepted) return "accepted";
  return record.code + " " + record.reason +
         (record.detail.empty() ? "" : " (" + record.detail + ")");
}

FusionResult proposeFusions(const Dataflow &flow, const FuseOptions &options) {
  Proposer proposer(flow, options, false);
  FusionResult result = proposer.run();
  return proposer.isFull() ? Proposer(flow, options, true).run() : result;
}

}  // namespace weft
