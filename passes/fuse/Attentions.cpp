// Walks backward from the scores of every online_softmax_contract through element-wise ops to
// contractions, then keeps what lies between; once more with the ops that unpack and pack tokens
// around it, where all of its tensors are packed, or with those that gather pages of keys and
// values. Each of these is tried with the rotary op that makes its queries, too.
#include "passes/fuse/Attentions.h"

#include "kernel/AttentionRegion.h"
#include "kernel/Error.h"

#include <algorithm>
#include <map>

namespace weft {
namespace {

class AttentionSearch {
public:
  AttentionSearch(const Dataflow &flow, const FuseOptions &options, const FusionRules &rules)
      : flow(flow), options(options), rules(rules) {}

  std::vector<EpilogueAttempt> run() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      if (flow.ops[op].kind == OpKind::onlineSoftmaxContract && !flow.ops[op].region) propose(op);
    return std::move(attempts);
  }

private:
  void propose(int fold) {
    const int scores = flow.ops[fold].operands.front();
    const std::set<int> contractions = contractionsBefore(scores);
    for (const int contraction : contractions) {
      std::map<int, bool> leadsFrom = {{contraction, true}};
      std::set<int> chain = {contraction, fold};
      addPaths(scores, leadsFrom, chain);
      attemptRotated(chain, fold);
      if (addPackedTokens(contraction, fold, chain)) attemptRotated(chain, fold);
      else if (addPages(contraction, fold, chain)) attemptRotated(chain, fold);
    }
    if (contractions.empty()) proposeNothing(fold);
  }

  /// What the fold gives is stored, or what packs it. Whether it was accepted.
  bool attempt(const std::set<int> &chain, int fold) {
    OpSet set(chain.begin(), chain.end());
    std::optional<Rejection> rejection = reject(set, fold);
    attempts.push_back({std::move(set), std::move(rejection)});
    return !attempts.back().rejection;
  }

  /// And once more with the rotary op that makes the queries.
  void attemptRotated(std::set<int> chain, int fold) {
    if (!attempt(chain, fold)) return;
    const BoundKernel bound = bindKernel(flow, OpSet(chain.begin(), chain.end()));
    const int queries = bound.inputs[attentionRegion(bound.kernel).value().qInput],
              producer = flow.tensors[queries].producer;
    if (producer < 0 || flow.ops[producer].kind != OpKind::rotary || flow.ops[producer].region)
      return;
    chain.insert(producer);
    attempt(chain, fold);
  }

  /// Adds what unpacks queries, keys and values, and what packs the output and the sums of its
  /// rows; false if not all of them are of packed tokens.
  bool addPackedTokens(int contraction, int fold, std::set<int> &chain) const {
    std::set<int> own = chain;
    for (const int tensor : {flow.ops[contraction].operands[0], flow.ops[contraction].operands[1],
                             flow.ops[fold].operands[1]}) {
      const int producer = flow.tensors[tensor].producer;
      if (producer < 0 || flow.ops[producer].kind != OpKind::unpack || flow.ops[producer].region)
        return false;
      own.insert(producer);
    }
    for (const int result : flow.ops[fold].results) {
      const std::vector<int> &readers = flow.tensors[result].consumers;
      if (readers.size() != 1 || flow.ops[readers.front()].kind != OpKind::pack ||
          flow.ops[readers.front()].region)
        return false;
      own.insert(readers.front());
    }
    chain = std::move(own);
    return true;
  }

  /// Adds what gathers the pages of keys and values; false if nothing does.
  bool addPages(int contraction, int fold, std::set<int> &chain) const {
    std::set<int> own = chain;
    for (const int tensor : {flow.ops[contraction].operands[0], flow.ops[contraction].operands[1],
                             flow.ops[fold].operands[1]})
      if (const int producer = flow.tensors[tensor].producer;
          producer >= 0 && flow.ops[producer].kind == OpKind::gatherPages &&
          !flow.ops[producer].region)
        own.insert(producer);
    if (own.size() == chain.size()) return false;
    chain = std::move(own);
    return true;
  }

  /// What makes the scores is the nearest op that is not element-wise.
  void proposeNothing(int fold) {
    int tensor = flow.ops[fold].operands.front();
    while (isElementwise(flow.tensors[tensor].producer))
      tensor = flow.ops[flow.tensors[tensor].producer].operands.front();
    const int producer = flow.tensors[tensor].producer;
    OpSet set = {fold};
    if (producer >= 0) set = unite(set, {producer});
    const std::string &name = flow.tensors[tensor].name;
    attempts.push_back(
        {std::move(set),
         Rejection{reasons::attentionRegion,
                   producer < 0 ? fmt::format("'{}', an argument, holds the scores", name)
                                : fmt::format("'{}' gives '{}', from which the scores are computed",
                                              nameOf(flow.ops[producer].kind), name)}});
  }

  bool isElementwise(int op) const {
    return op >= 0 && flow.ops[op].operatorClass == OperatorClass::elementwise &&
           !flow.ops[op].region;
  }

  /// From which element-wise ops alone lead to a tensor.
  std::set<int> contractionsBefore(int tensor) const {
    std::set<int> found, seen;
    std::vector<int> open = {tensor};
    while (!open.empty()) {
      const int producer = flow.tensors[open.back()].producer;
      open.pop_back();
      if (producer < 0 || !seen.insert(producer).second) continue;
      if (flow.ops[producer].kind == OpKind::contract) found.insert(producer);
      else if (isElementwise(producer))
        open.insert(open.end(), flow.ops[producer].operands.begin(),
                    flow.ops[producer].operands.end());
    }
    return found;
  }

  /// Adds the element-wise ops on paths from the contraction to a tensor; false if there is none.
  /// `leadsFrom`: by op, whether there is one to its results.
  bool addPaths(int tensor, std::map<int, bool> &leadsFrom, std::set<int> &chain) const {
    const int producer = flow.tensors[tensor].producer;
    if (const auto known = leadsFrom.find(producer); known != leadsFrom.end()) return known->second;
    if (!isElementwise(producer)) return false;
    bool isOnPath = false;
    for (const int operand : flow.ops[producer].operands)
      isOnPath |= addPaths(operand, leadsFrom, chain);
    if (isOnPath) chain.insert(producer);
    return leadsFrom[producer] = isOnPath;
  }

  std::optional<Rejection> reject(const OpSet &set, int fold) const {
    if (std::optional<Rejection> chosen = rules.rejectByChoice(set)) return chosen;
    if (std::optional<int> between = rules.opBetween(set))
      return Rejection{reasons::wouldCreateCycle, flow.ops[*between].label};
    const bool isPacked =
        std::ranges::any_of(set, [&](int op) { return flow.ops[op].kind == OpKind::pack; });
    for (const int op : set) {
      const bool stores = isPacked ? flow.ops[op].kind == OpKind::pack : op == fold;
      if (std::string detail = stores ? "" : readElsewhere(op, set); !detail.empty())
        return Rejection{reasons::attentionRegion, std::move(detail)};
    }
    Kernel kernel;
    try {
      kernel = bindKernel(flow, set).kernel;
    } catch (const Error &error) {
      return Rejection{reasons::accessTwice, error.what()};
    }
    if (Expected<AttentionRegion, Reason> answer = attentionRegion(kernel); !answer)
      return Rejection{reasons::attentionRegion, std::move(answer.error().text)};
    if (std::string rejection = options.attentionRejection(kernel); !rejection.empty())
      return Rejection{reasons::attentionOff, std::move(rejection)};
    return std::nullopt;
  }

  /// Why what an op gives has to be stored; empty if it has not.
  std::string readElsewhere(int op, const OpSet &set) const {
    for (const int tensor : flow.ops[op].results) {
      const FlowTensor &made = flow.tensors[tensor];
      for (const int consumer : made.consumers)
        if (!contains(set, consumer))
          return fmt::format("'{}' reads '{}' as well", flow.ops[consumer].label, made.name);
      if (made.leaves) return fmt::format("'{}' is a result of the graph", made.name);
    }
    return "";
  }

  const Dataflow &flow;
  const FuseOptions &options;
  const FusionRules &rules;
  std::vector<EpilogueAttempt> attempts;
};

}  // namespace

std::vector<EpilogueAttempt> proposeAttentions(const Dataflow &flow, const FuseOptions &options,
                                               const FusionRules &rules) {
  return AttentionSearch(flow, options, rules).run();
}

}  // namespace weft
