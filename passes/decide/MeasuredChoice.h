// The choice by measuring: the plans that selection predicts to be best, timed as whole graphs, and
// the one to keep.
#pragma once

#include "passes/decide/Decide.h"

namespace weft::decision {

/// A path, the variant it is of, and in how many chunks it runs (PlanChunks.h).
struct RankedPath {
  size_t variant = 0;  ///< index into Decision::variants
  select::SelectionResult path;
  int chunks = 1;
  bool concurrent = false;
  bool isPipelined = false;  ///< these chunks are slices
  double seconds = 0;        ///< predicted, as a whole graph
  double sumSeconds = 0;     ///< of its kernels' prices
};

/// At most `count` distinct plans, the chosen one first, then in the order of their predicted
/// times. Half of the places are for the chosen path in other numbers of slices, where --pipeline
/// leaves them open, and in other numbers of chunks, each by time; then come
/// the best of as many variants as fill three quarters, the next best paths of the best variant,
/// and the best of further variants. None needs more memory than the limit.
std::vector<RankedPath> plansToMeasure(const PlanContext &context, const Options &options,
                                       const Decision &decision, int count);

/// Times Options::plansToMeasure plans and makes the one to keep the chosen one of the decision;
/// what was measured is recorded there. Where concurrency is open, that one is then timed against
/// itself with concurrent kernels, if it has kernels that may run at once and these fit into the
/// memory. Throws what `measure` throws.
void chooseByMeasuring(const PlanContext &context, const Options &options, Decision &decision,
                       const Measure &measure);

}  // namespace weft::decision
