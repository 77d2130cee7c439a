// Breadth-first search from every contraction over the readers of the set's results and over
// reductions of its operands, so that pairs come first.
#include "passes/fuse/Epilogues.h"

#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/ReduceKind.h"

#include <algorithm>
#include <deque>
#include <tuple>

namespace weft {
namespace {

/// Accepted sets of one contraction at which the search ends: a long chain has fewer, optimizers
/// behind gradients have more.
constexpr size_t searchedEpilogues = 16;

class EpilogueSearch {
public:
  EpilogueSearch(const Dataflow &flow, const FuseOptions &options, const FusionRules &rules)
      : flow(flow), options(options), rules(rules) {}

  std::vector<EpilogueAttempt> run() {
    for (int op = 0; op < static_cast<int>(flow.ops.size()); ++op)
      if (flow.ops[op].kind == OpKind::contract && !flow.ops[op].region) grow(op);
    return std::move(attempts);
  }

private:
  void grow(int contraction) {
    const size_t firstAttempt = attempts.size();
    std::set<OpSet> tried;
    std::deque<OpSet> work = {{contraction}};
    size_t accepted = 0;
    while (!work.empty()) {
      const OpSet set = std::move(work.front());
      work.pop_front();
      for (int reader : neighboursOf(set)) {
        OpSet both = unite(set, withSums(reader));
        if (!tried.insert(both).second) continue;
        std::optional<Rejection> rejection =
            accepted < searchedEpilogues ? reject(both) : bound(searchedEpilogues);
        attempts.push_back({both, rejection});
        if (rejection) continue;
        ++accepted;
        work.push_back(std::move(both));
      }
    }
    keepBest(firstAttempt);
  }

  /// Readers of the set's results but what ends an attention (Attentions.h), and reductions of an
  /// operand of its contraction: the gradient of a bias with that of weights.
  std::set<int> neighboursOf(const OpSet &set) const {
    std::set<int> neighbours;
    const auto addReaders = [&](int tensor, bool reductionsOnly) {
      for (int consumer : flow.tensors[tensor].consumers)
        if (!contains(set, consumer) && flow.ops[consumer].kind != OpKind::onlineSoftmaxContract &&
            (!reductionsOnly || isSum(flow.ops[consumer].kind, flow.ops[consumer].attributes)))
          neighbours.insert(consumer);
    };
    for (int op : set)
      for (int tensor : flow.ops[op].results) addReaders(tensor, false);
    if (set.size() == 1)
      for (int tensor : flow.ops[set.front()].operands) addReaders(tensor, true);
    return neighbours;
  }

  /// The op; and what it leads to, if that is nothing but sums, since a tensor that is only made to
  /// be summed is no result of a kernel.
  OpSet withSums(int op) const {
    std::set<int> all = {op};
    if (!leadsToSums(op, all)) return {op};
    return {all.begin(), all.end()};
  }

  bool leadsToSums(int op, std::set<int> &all) const {
    if (isSum(flow.ops[op].kind, flow.ops[op].attributes)) return true;
    if (flow.ops[op].operatorClass != OperatorClass::elementwise) return false;
    for (int tensor : flow.ops[op].results) {
      if (flow.tensors[tensor].leaves || flow.tensors[tensor].consumers.empty()) return false;
      for (int consumer : flow.tensors[tensor].consumers) {
        if (all.insert(consumer).second && !leadsToSums(consumer, all)) return false;
      }
    }
    return true;
  }

  static bool isSum(OpKind op, const std::map<std::string, Attribute> &attributes) {
    return reduceKind(op, attributes) == ReduceKind::sum;
  }

  /// Without reductions: the family says which it accepts in an epilogue.
  static Kernel elementwisePart(Kernel kernel) {
    std::erase_if(kernel.body, [&](const BodyOp &op) {
      return isSum(op.kind, op.attributes) && std::erase(kernel.outputs, op.results[0]) > 0;
    });
    return kernel;
  }

  std::optional<Rejection> reject(const OpSet &both) const {
    if (std::optional<Rejection> chosen = rules.rejectByChoice(both)) return chosen;
    if (std::optional<int> between = rules.opBetween(both))
      return Rejection{reasons::wouldCreateCycle, flow.ops[*between].label};
    // A rotary embedding right behind the contraction is recognised; others are not.
    std::optional<Rejection> partner = rules.rejectPartnerAccess(both);
    Kernel kernel;
    try {
      kernel = bindKernel(flow, both).kernel;
    } catch (const Error &error) {
      return Rejection{reasons::accessTwice, error.what()};
    }
    if (const Expected<ContractionRegion, Reason> answer =
            contractionRegion(elementwisePart(kernel));
        !answer || (partner && !answer->rotary)) {
      const std::string reason = answer ? "" : answer.error().text;
      return partner ? Rejection{partner->code, fmt::format("{}: {}", partner->detail, reason)}
                     : Rejection{reasons::noEpilogue, reason};
    }
    if (std::string rejection = options.epilogueRejection(kernel); !rejection.empty())
      return Rejection{reasons::contractionEpilogueOff, std::move(rejection)};
    return std::nullopt;
  }

  static Rejection bound(size_t epilogues) {
    return {reasons::candidateBound, std::to_string(epilogues) + " epilogues of a contraction"};
  }

  /// Rejects all but the best accepted attempts of one contraction.
  void keepBest(size_t firstAttempt) {
    std::vector<EpilogueAttempt *> accepted;
    for (size_t attempt = firstAttempt; attempt < attempts.size(); ++attempt)
      if (!attempts[attempt].rejection) accepted.push_back(&attempts[attempt]);
    const auto isInside = [](const OpSet &set, const OpSet &other) {
      return set.size() < other.size() && std::ranges::includes(other, set);
    };
    const auto rank = [&](const EpilogueAttempt *attempt) {
      const OpSet &ops = attempt->ops;
      const bool isWhole = std::ranges::none_of(
          accepted, [&](const EpilogueAttempt *other) { return isInside(ops, other->ops); });
      return std::tuple(!rules.isForced(ops), !isWhole, ops.size() > 2, -std::ssize(ops));
    };
    std::vector<std::pair<decltype(rank(nullptr)), EpilogueAttempt *>> ranked;
    for (EpilogueAttempt *attempt : accepted) ranked.emplace_back(rank(attempt), attempt);
    std::ranges::stable_sort(ranked, {}, [](const auto &entry) { return entry.first; });
    for (size_t place = static_cast<size_t>(options.maxEpilogues); place < ranked.size(); ++place)
      ranked[place].second->rejection = bound(static_cast<size_t>(options.maxEpilogues));
  }

  const Dataflow &flow;
  const FuseOptions &options;
  const FusionRules &rules;
  std::vector<EpilogueAttempt> attempts;
};

}  // namespace

std::vector<EpilogueAttempt> proposeEpilogues(const Dataflow &flow, const FuseOptions &options,
                                              const FusionRules &rules) {
  return EpilogueSearch(flow, options, rules).run();
}

}  // namespace weft
