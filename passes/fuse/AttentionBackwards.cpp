// From every softmax_from_log_sums down through element-wise ops to the contractions that read
// them, up from these ops to the contractions that they are computed from, and what lies between;
// once more with the ops that unpack and pack tokens around it.
#include "passes/fuse/AttentionBackwards.h"

#include "kernel/AttentionBackwardRegion.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft {
namespace {

class AttentionBackwardSearch {
public:
  AttentionBackwardSearch(const Dataflow &flow, const FuseOptions &options,
                          const FusionRules &rules)
      : flow(flow), options(options), rules(rules) {}

  std::vector<EpilogueAttempt> run() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      if (flow.ops[op].kind == OpKind::softmaxFromLogSums && !flow.ops[op].region) propose(op);
    return std::move(attempts);
  }

private:
  void propose(int probability) {
    const std::set<int> ofScores = contractionsBefore({flow.ops[probability].operands.front()});
    for (const int scores : ofScores) {
      // Of other contractions the scores have no ops: their results come from memory.
      std::set<int> others = ofScores;
      others.erase(scores);
      const OpSet set = around(probability, scores, others);
      attempt(set);
      if (const OpSet packed = withPackedTokens(set); packed.size() > set.size()) attempt(packed);
    }
  }

  void attempt(OpSet set) {
    std::optional<Rejection> rejection = reject(set);
    attempts.push_back({std::move(set), std::move(rejection)});
  }

  /// With what unpacks tokens for these ops alone, and what packs the gradients.
  OpSet withPackedTokens(const OpSet &set) const {
    std::set<int> all(set.begin(), set.end());
    const auto isOf = [&](int op, OpKind kind) {
      return op >= 0 && flow.ops[op].kind == kind && !flow.ops[op].region;
    };
    for (const int op : set) {
      for (const int tensor : flow.ops[op].operands)
        if (const int producer = flow.tensors[tensor].producer; isOf(producer, OpKind::unpack))
          all.insert(producer);
      for (const int tensor : flow.ops[op].results)
        for (const int consumer : flow.tensors[tensor].consumers)
          if (isOf(consumer, OpKind::pack)) all.insert(consumer);
    }
    return {all.begin(), all.end()};
  }

  bool isElementwise(int op) const {
    return op >= 0 && flow.ops[op].operatorClass == OperatorClass::elementwise &&
           !flow.ops[op].region;
  }
  bool isContraction(int op) const {
    return op >= 0 && flow.ops[op].kind == OpKind::contract && !flow.ops[op].region;
  }

  /// From which element-wise ops alone lead to one of the tensors.
  std::set<int> contractionsBefore(std::vector<int> open) const {
    std::set<int> found, seen;
    while (!open.empty()) {
      const int producer = flow.tensors[open.back()].producer;
      open.pop_back();
      if (producer < 0 || !seen.insert(producer).second) continue;
      if (isContraction(producer)) found.insert(producer);
      else if (isElementwise(producer))
        open.insert(open.end(), flow.ops[producer].operands.begin(),
                    flow.ops[producer].operands.end());
    }
    return found;
  }

  /// What a kernel of the probabilities holds: the element-wise ops that need them, the
  /// contractions that read these, and all contractions and element-wise ops that these need.
  OpSet around(int probability, int scores, const std::set<int> &others) const {
    std::set<int> set = {probability}, readers;
    addReaders(probability, set, readers);
    std::set<int> before = {scores};
    for (const int contraction : contractionsBefore(operandsOf(set)))
      if (!others.contains(contraction)) before.insert(contraction);
    std::map<int, bool> leads;  // by op, whether there is a way from one of `before` to its results
    for (const int contraction : before) leads[contraction] = true;
    for (const int tensor : operandsOf(set)) addPaths(tensor, leads, set);
    // What else is computed from these contractions: the derivatives of what needs no probability.
    for (const int contraction : before) addReaders(contraction, set, readers);
    set.insert(before.begin(), before.end());
    set.insert(readers.begin(), readers.end());
    return {set.begin(), set.end()};
  }

  std::vector<int> operandsOf(const std::set<int> &ops) const {
    std::vector<int> tensors;
    for (const int op : ops)
      tensors.insert(tensors.end(), flow.ops[op].operands.begin(), flow.ops[op].operands.end());
    return tensors;
  }

  /// The element-wise ops that an op leads to through such ops, and the contractions behind them.
  void addReaders(int op, std::set<int> &elementwise, std::set<int> &contractions) const {
    for (const int tensor : flow.ops[op].results)
      for (const int consumer : flow.tensors[tensor].consumers)
        if (isContraction(consumer)) contractions.insert(consumer);
        else if (isElementwise(consumer) && elementwise.insert(consumer).second)
          addReaders(consumer, elementwise, contractions);
  }

  /// Adds the element-wise ops on paths to a tensor; false if there is none.
  bool addPaths(int tensor, std::map<int, bool> &leads, std::set<int> &set) const {
    const int producer = flow.tensors[tensor].producer;
    if (const auto known = leads.find(producer); known != leads.end()) return known->second;
    if (!isElementwise(producer)) return false;
    bool isOnPath = false;
    for (const int operand : flow.ops[producer].operands) isOnPath |= addPaths(operand, leads, set);
    if (isOnPath) set.insert(producer);
    return leads[producer] = isOnPath;
  }

  std::optional<Rejection> reject(const OpSet &set) const {
    // What forward has between its contractions, and as many derivatives; and what moves tokens.
    const auto moved = std::ranges::count_if(set, [&](int op) {
      return flow.ops[op].kind == OpKind::unpack || flow.ops[op].kind == OpKind::pack;
    });
    if (std::optional<Rejection> chosen =
            rules.rejectByChoice(set, 2 * options.maxOps + int(moved)))
      return chosen;
    if (std::optional<int> between = rules.opBetween(set))
      return Rejection{reasons::wouldCreateCycle, flow.ops[*between].label};
    Kernel kernel;
    try {
      kernel = bindKernel(flow, set).kernel;
    } catch (const Error &error) {
      return Rejection{reasons::accessTwice, error.what()};
    }
    if (Expected<AttentionBackwardRegion, Reason> answer = attentionBackwardRegion(kernel);
        !answer) {
      std::string detail = readElsewhere(set);
      return Rejection{reasons::attentionBackwardRegion,
                       detail.empty() ? std::move(answer.error().text) : std::move(detail)};
    }
    if (std::string rejection = options.attentionBackwardRejection(kernel); !rejection.empty())
      return Rejection{reasons::attentionBackwardOff, std::move(rejection)};
    return std::nullopt;
  }

  /// Why what lies between the contractions has to be stored, where the region says no: it takes
  /// one gradient of scores as a result. Empty if nothing has. The last contractions are
  /// those that none of the set reads.
  std::string readElsewhere(const OpSet &set) const {
    for (const int op : set) {
      const auto isRead = [&](int tensor) {
        return std::ranges::any_of(flow.tensors[tensor].consumers, [&](int consumer) {
          return contains(set, consumer) && flow.ops[consumer].kind != OpKind::pack;
        });
      };
      if (isContraction(op) && std::ranges::none_of(flow.ops[op].results, isRead)) continue;
      for (const int tensor : flow.ops[op].results) {
        const FlowTensor &made = flow.tensors[tensor];
        for (const int consumer : made.consumers)
          if (!contains(set, consumer))
            return fmt::format("'{}' reads '{}' as well", flow.ops[consumer].label, made.name);
        if (made.leaves) return fmt::format("'{}' is a result of the graph", made.name);
      }
    }
    return "";
  }

  const Dataflow &flow;
  const FuseOptions &options;
  const FusionRules &rules;
  std::vector<EpilogueAttempt> attempts;
};

}  // namespace

std::vector<EpilogueAttempt> proposeAttentionBackwards(const Dataflow &flow,
                                                       const FuseOptions &options,
                                                       const FusionRules &rules) {
  return AttentionBackwardSearch(flow, options, rules).run();
}

}  // namespace weft
