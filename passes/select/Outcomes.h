// The ways to run one candidate from given layouts of its inputs, cheapest first, without those
// that others dominate.
#pragma once

#include "passes/select/Prices.h"

#include <map>
#include <span>
#include <unordered_map>

namespace weft::select {

using Masks = std::vector<LayoutMask>;
using MaskView = std::span<const LayoutMask>;

/// One way to run a candidate from given input masks.
struct Outcome {
  double seconds = infinite;   ///< kernel and transposes
  size_t entry = 0;            ///< of the candidate's table
  double forecast = infinite;  ///< with what the readers of the outputs lose
};
/// What it leads to: most outcomes are never asked.
struct OutcomeSteps {
  double kernelSeconds = infinite;
  std::vector<int> outputLayouts = {};  ///< per output, numbers of the tensor's layouts
  std::vector<std::pair<int, int>> transposes =
      {};  ///< (tensor, layout) to be made first, ascending
};

class Outcomes {
public:
  Outcomes(const Problem &problem, const Prices &prices) : problem(problem), prices(prices) {}

  struct Ranked {
    std::vector<Outcome> all;  ///< sorted by forecast
    std::vector<double> leastFrom =
        {};  ///< per outcome: the least seconds of it and those behind it
    std::map<size_t, OutcomeSteps> steps = {};  ///< of those that were asked
  };
  /// The cheapest way for every combination of output layouts and of copies that outlive the
  /// kernel. `inputs`: layouts in which each input exists; `matters`: per operand, whether its
  /// layout is remembered afterwards.
  Ranked &of(int candidate, const Masks &inputs, const std::vector<bool> &matters);
  /// Of an answer, to a question about the same candidate and inputs.
  const OutcomeSteps &stepsOf(Ranked &answer, size_t outcome, int candidate,
                              const Masks &inputs) const;
  /// That all answers take, as accounted.
  int64_t bytes() const { return held; }
  /// What they took: table entries looked up, and sixteen for each outcome, which takes so much
  /// longer.
  int64_t work() const { return worked; }

private:
  Ranked find(int candidate, const Masks &inputs, const std::vector<bool> &matters);

  const Problem &problem;
  const Prices &prices;
  std::string key;                              ///< of the last question; kept for its memory
  std::vector<std::pair<double, size_t>> best;  ///< of the last search; kept for its memory
  int64_t held = 0, worked = 0;
  std::unordered_map<std::string, Ranked> found;  ///< by candidate, masks and what matters
};

}  // namespace weft::select
