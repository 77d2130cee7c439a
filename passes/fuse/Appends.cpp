// Walks backward from the tokens of every append; see Appends.h.
#include "passes/fuse/Appends.h"

#include "kernel/Append.h"
#include "kernel/Error.h"

namespace weft {
namespace {

class AppendSearch {
public:
  AppendSearch(const Dataflow &flow, const FusionRules &rules) : flow(flow), rules(rules) {}

  std::vector<EpilogueAttempt> run() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      if (flow.ops[op].kind == OpKind::append && !flow.ops[op].region) propose(op);
    return std::move(attempts);
  }

private:
  void propose(int append) {
    OpSet set = {append};
    for (int next = flow.tensors[flow.ops[append].operands[appendedTokens]].producer;
         isTaken(next, set);) {
      set = unite(set, {next});
      std::optional<Rejection> rejection = reject(set);
      const bool isRejected = rejection.has_value();
      attempts.push_back({set, std::move(rejection)});
      if (isRejected) return;
      next = flow.tensors[flow.ops[next].operands.front()].producer;
    }
  }

  /// Whether the op is element-wise, and its results have readers in the set alone.
  bool isTaken(int op, const OpSet &set) const {
    if (op < 0 || flow.ops[op].operatorClass != OperatorClass::elementwise || flow.ops[op].region)
      return false;
    return std::ranges::all_of(flow.ops[op].results, [&](int tensor) {
      return !flow.tensors[tensor].leaves &&
             std::ranges::all_of(flow.tensors[tensor].consumers,
                                 [&](int consumer) { return contains(set, consumer); });
    });
  }

  std::optional<Rejection> reject(const OpSet &set) const {
    if (std::optional<Rejection> chosen = rules.rejectByChoice(set)) return chosen;
    if (std::optional<int> between = rules.opBetween(set))
      return Rejection{reasons::wouldCreateCycle, flow.ops[*between].label};
    if (std::optional<Rejection> access = rules.rejectPartnerAccess(set)) return access;
    try {
      if (std::string reason = appendRejection(bindKernel(flow, set).kernel); !reason.empty())
        return Rejection{reasons::movementOp, std::move(reason)};
    } catch (const Error &error) {
      return Rejection{reasons::accessTwice, error.what()};
    }
    return std::nullopt;
  }

  const Dataflow &flow;
  const FusionRules &rules;
  std::vector<EpilogueAttempt> attempts;
};

}  // namespace

std::vector<EpilogueAttempt> proposeAppends(const Dataflow &flow, const FusionRules &rules) {
  return AppendSearch(flow, rules).run();
}

}  // namespace weft
