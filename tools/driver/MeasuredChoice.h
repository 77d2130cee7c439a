// compile --measure: the plans that selection predicts to be best, timed as whole graphs on this machine's GPU, and the choice
// among them (design: "Selection, precisely").
#pragma once

#include "runtime/Cuda.h"
#include "tools/driver/Compilation.h"

#include <optional>

namespace weft::driver {

/// --measure: how many plans are timed; 0 for none.
struct MeasureFlags {
  int plans = 0;

  void declare(CLI::App &command);
  bool asked() const { return plans != 0; }
  /// Opens the GPU to measure on. Throws Error(badInput) for less than two plans and where the command ends before there are cubins,
  /// Error(unsupported) where there is no GPU or no NVRTC.
  void open(const PhaseFlags &phases, std::optional<runtime::cuda::Context> &gpu) const;
};

/// A path and the variant it is of.
struct RankedPath {
  size_t variant = 0;  ///< index into Selected::variants
  select::Plan path;
};

/// At most `count` distinct plans in the order of their predicted times: the best of as many variants as fill half of the places,
/// then the next best paths of the best variant, then the best of further variants. The predicted best is the first.
std::vector<RankedPath> plansToMeasure(const Compilation &compilation, const Selected &selected, int count);

/// Builds and times the plans, and makes the one to keep the chosen one of `selected`; what was measured is recorded there.
/// A difference within noise leaves the predicted order as it is (runtime/ComparePlans.h). Throws what comparePlans throws.
void chooseByMeasuring(const Compilation &compilation, Selected &selected, const TargetFlags &target, const MeasureFlags &flags,
                       const runtime::cuda::Context &gpu);

}  // namespace weft::driver
