// compile --measure: the plans that selection predicts to be best, timed as whole graphs on this
// machine's GPU, and the choice among them (design: "Selection, precisely").
#pragma once

#include "runtime/cuda/Cuda.h"
#include "tools/driver/Compilation.h"

#include <optional>

namespace weft::driver {

/// --measure: how many plans are timed; 0 for none.
struct MeasureFlags {
  int plans = 0;

  void declare(CLI::App &command);
  bool asked() const { return plans != 0; }
  /// Opens the GPU to measure on. Throws Error(badInput) for less than two plans and where the
  /// command ends before there are cubins, Error(unsupported) where there is no GPU or no NVRTC.
  void open(const PhaseFlags &phases, std::optional<runtime::cuda::Context> &gpu) const;
};

/// A path, the variant it is of, and in how many chunks it runs (PlanChunks.h).
struct RankedPath {
  size_t variant = 0;  ///< index into Selected::variants
  select::SelectionResult path;
  int chunks = 1;
  bool concurrent = false;
  double seconds = 0;     ///< predicted, as a whole graph
  double sumSeconds = 0;  ///< of its kernels' prices
};

/// At most `count` distinct plans, the chosen one first, then in the order of their predicted
/// times. Half of the places are for the chosen path in other numbers of chunks, by time; then come
/// the best of as many variants as fill three quarters, the next best paths of the best variant,
/// and the best of further variants. None needs more memory than --max-memory.
std::vector<RankedPath> plansToMeasure(const Compilation &compilation, const Selected &selected,
                                       int count);

/// Builds and times the plans, and makes the one to keep the chosen one of `selected`; what was
/// measured is recorded there. With --concurrent auto that one is then timed against itself with
/// concurrent, where it has kernels that may run at once, and where these fit into --max-memory. A
/// difference within noise leaves the predicted order as it is (runtime/measure/ComparePlans.h).
/// Throws what comparePlans throws.
void chooseByMeasuring(const Compilation &compilation, Selected &selected,
                       const TargetFlags &target, const MeasureFlags &flags,
                       const runtime::cuda::Context &gpu);

}  // namespace weft::driver
