// Walks backward from every operand of every contraction while exactly one input has as many
// elements as the operand.
#include "passes/fuse/Prologues.h"

#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft {
namespace {

/// Ops of a chain at most: a norm's application has four.
constexpr size_t longestPrologue = 6;

class PrologueSearch {
public:
  PrologueSearch(const Dataflow &flow, const FuseOptions &options, const FusionRules &rules,
                 const std::vector<EpilogueAttempt> &epilogues)
      : flow(flow), options(options), rules(rules), epilogues(epilogues) {}

  std::vector<EpilogueAttempt> run() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      if (flow.ops[op].kind == OpKind::contract && !flow.ops[op].region)
        for (int operand :
             std::set<int>(flow.ops[op].operands.begin(), flow.ops[op].operands.end()))
          propose(op, chainTo(operand, op));
    return std::move(attempts);
  }

private:
  /// Nearest to the contraction first.
  std::vector<int> chainTo(int tensor, int reader) const {
    std::vector<int> chain;
    const size_t elements = elementsOf(tensor);
    while (chain.size() < longestPrologue && mayStand(tensor, reader)) {
      reader = flow.tensors[tensor].producer;
      chain.push_back(reader);
      std::vector<int> further;
      for (int operand :
           std::set<int>(flow.ops[reader].operands.begin(), flow.ops[reader].operands.end()))
        if (elementsOf(operand) == elements) further.push_back(operand);
      if (further.size() != 1) break;
      tensor = further.front();
    }
    return chain;
  }

  /// Whether an op before a contraction may make this tensor, which is read by `reader` alone.
  bool mayStand(int tensor, int reader) const {
    const FlowTensor &made = flow.tensors[tensor];
    if (made.producer < 0 || made.leaves || made.isParameter ||
        made.consumers != std::vector{reader})
      return false;
    const FlowOp &op = flow.ops[made.producer];
    const BodyOp alone{.kind = op.kind,
                       .operatorClass = op.operatorClass,
                       .operands = {},
                       .results = std::vector<ValueId>(op.results.size(), 0),
                       .reducedAxes = {},
                       .attributes = op.attributes,
                       .expression = op.expression};
    return !op.region && prologueRejection(alone).empty();
  }

  size_t elementsOf(int tensor) const {
    return static_cast<size_t>(flow.tensors[tensor].bytes() / sizeOf(flow.tensors[tensor].dtype));
  }

  void propose(int contraction, std::vector<int> chain) {
    const auto setOf = [&](size_t length) {
      OpSet set(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(length));
      set.push_back(contraction);
      std::ranges::sort(set);
      return set;
    };
    size_t taken = chain.size();
    while (taken > 0 && !attempt(setOf(taken))) --taken;
    if (taken == 0) return;
    if (taken > 1) attempt(setOf(1));
    if (const OpSet epilogue = largestEpilogue(contraction); !epilogue.empty())
      attempt(unite(setOf(taken), epilogue));
  }

  /// Without reductions, which no kernel with a prologue has.
  OpSet largestEpilogue(int contraction) const {
    OpSet best;
    for (const EpilogueAttempt &one : epilogues) {
      const auto isElementwise = [&](int op) {
        return op == contraction || flow.ops[op].operatorClass == OperatorClass::elementwise;
      };
      if (!one.rejection && contains(one.ops, contraction) && one.ops.size() > best.size() &&
          std::ranges::all_of(one.ops, isElementwise))
        best = one.ops;
    }
    return best;
  }

  bool attempt(OpSet set) {
    std::optional<Rejection> rejection = reject(set);
    const bool isAccepted = !rejection;
    attempts.push_back({std::move(set), std::move(rejection)});
    return isAccepted;
  }

  std::optional<Rejection> reject(const OpSet &set) const {
    if (std::optional<Rejection> chosen = rules.rejectByChoice(set)) return chosen;
    if (std::optional<int> between = rules.opBetween(set))
      return Rejection{reasons::wouldCreateCycle, flow.ops[*between].label};
    Kernel kernel;
    try {
      kernel = bindKernel(flow, set).kernel;
    } catch (const Error &error) {
      return Rejection{reasons::accessTwice, error.what()};
    }
    if (const Expected<ContractionRegion, Reason> answer = contractionRegion(kernel); !answer)
      return Rejection{reasons::noPrologue, answer.error().text};
    if (std::string rejection = options.prologueRejection(kernel); !rejection.empty())
      return Rejection{reasons::contractionPrologueOff, std::move(rejection)};
    return std::nullopt;
  }

  const Dataflow &flow;
  const FuseOptions &options;
  const FusionRules &rules;
  const std::vector<EpilogueAttempt> &epilogues;
  std::vector<EpilogueAttempt> attempts;
};

}  // namespace

std::vector<EpilogueAttempt> proposePrologues(const Dataflow &flow, const FuseOptions &options,
                                              const FusionRules &rules,
                                              const std::vector<EpilogueAttempt> &epilogues) {
  return PrologueSearch(flow, options, rules, epilogues).run();
}

}  // namespace weft
