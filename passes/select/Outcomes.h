// The ways to run one candidate from given layouts of its inputs, cheapest first, without those
// that others dominate.
#pragma once

#include "passes/select/Prices.h"

#include <span>
#include <unordered_map>

namespace weft::select {

using Masks = std::vector<LayoutMask>;
using MaskView = std::span<const LayoutMask>;

/// One way to run a candidate from given input masks.
struct Outcome {
  double seconds = infinite;  ///< kernel and transposes
  double kernelSeconds = infinite;
  double forecast = infinite;                   ///< with what the readers of the outputs lose
  size_t entry = 0;                             ///< of the candidate's table
  std::vector<int> outputLayouts;               ///< per output, numbers of the tensor's layouts
  std::vector<std::pair<int, int>> transposes;  ///< (tensor, layout) to be made first, ascending
};

class Outcomes {
public:
  Outcomes(const Problem &problem, const Prices &prices) : problem(problem), prices(prices) {}

  struct Ranked {
    std::vector<Outcome> all;  ///< sorted by forecast
    std::vector<double> leastFrom =
        {};  ///< per outcome: the least seconds of it and those behind it
  };
  /// The cheapest way for every combination of output layouts and of copies that outlive the
  /// kernel. `inputs`: layouts in which each input exists; `matters`: per operand, whether its
  /// layout is remembered afterwards.
  const Ranked &of(int candidate, const Masks &inputs, const std::vector<bool> &matters);
  /// That all answers take, as accounted.
  int64_t bytes() const { return held; }
  /// What they took: table entries looked up, and sixteen for each outcome, which takes so much
  /// longer.
  int64_t work() const { return worked; }

private:
  Ranked find(int candidate, const Masks &inputs, const std::vector<bool> &matters) const;
  void complete(Outcome &outcome, int candidate, const Masks &inputs) const;

  const Problem &problem;
  const Prices &prices;
  std::string key;  ///< of the last question; kept for its memory
  int64_t held = 0, worked = 0;
  std::unordered_map<std::string, Ranked> found;  ///< by candidate, masks and what matters
};

}  // namespace weft::select
