// Prices of what a plan is not; see PriceQuestions.h.
#include "passes/decide/PriceQuestions.h"

#include "kernel/UnusedTokens.h"

#include <algorithm>

namespace weft::decision {
namespace {

/// Why no plan has a contraction apart from the mask of its tokens although some kernel is of the
/// contraction alone (Prices::leaveOutUncounted).
constexpr const char *uncountedReason =
    "a contraction without its mask leaves out no row, and the device counts the tokens";

/// Of two ops that no plan separates: whether one masks the tokens that the other one, a
/// contraction, computes, and both could be kernels apart.
bool isLeftOutUncounted(const select::Problem &problem, int a, int b) {
  const auto isMask = [&](int op) {
    return std::ranges::any_of(problem.candidates, [&](const select::Candidate &candidate) {
      return candidate.ops == std::vector<int>{op} && candidate.kernel.body.size() == 1 &&
             isTokenMask(candidate.kernel.body[0]);
    });
  };
  const auto isContraction = [&](int op, int mask) {
    return std::ranges::any_of(problem.candidates, [&](const select::Candidate &candidate) {
      return std::ranges::count(candidate.ops, op) > 0 &&
             std::ranges::count(candidate.ops, mask) == 0 &&
             candidate.kernel.operatorClass() == OperatorClass::contraction;
    });
  };
  return (isMask(a) && isContraction(b, a)) || (isMask(b) && isContraction(a, b));
}

}  // namespace

FusedOtherwise fusedOtherwise(const select::Selection &selection,
                              const select::SelectionResult &chosen, int a, int b, bool isFused) {
  FusedOtherwise other{.path = selection.planIfFused(a, b, !isFused)};
  if (other.path) other.loss = std::max(0.0, other.path->seconds - chosen.seconds);
  else if (!isFused && selection.waitsForMeasurements(a, b)) other.whyNone = select::waitingReason;
  else if (isFused && isLeftOutUncounted(selection.problem(), a, b))
    other.whyNone = uncountedReason;
  return other;
}

std::vector<std::pair<Layout, double>> layoutLosses(const select::Selection &selection,
                                                    int tensor) {
  return selection.layoutPrices(tensor);
}

std::vector<select::SelectionResult> bestPaths(const Decision &decision, int most) {
  return decision.best().selection.kBest(most);
}

}  // namespace weft::decision
