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
  double optimistic = 0;     ///< seconds, with its estimates at their optimistic end
};

/// The variants' best paths with estimates at their optimistic end (OptimisticCost.h), which a
/// search at their mean plus a margin does not find.
struct OptimisticPaths {
  const CostModel &prices;   ///< of `decision`
  const Decision &decision;  ///< its variants alone are decided
};

/// At most `count` distinct plans, the chosen one first, then in the order of what they take with
/// their estimates at their optimistic end. The second place is for the path that is best at that
/// end. Half of the places are for these, for the chosen path in other numbers of slices, where
/// --pipeline leaves them open, and in other numbers of chunks, each by time; then come the best of
/// as many variants as fill three quarters, the next best paths at either end, and the best of
/// further variants. None needs more memory than the limit.
std::vector<RankedPath> plansToMeasure(const PlanContext &context, const Options &options,
                                       const Decision &decision, const OptimisticPaths &optimistic,
                                       int count);

/// Times Options::plansToMeasure plans and makes the one to keep the chosen one of the decision;
/// what was measured is recorded there. Where concurrency is open, that one is then timed against
/// itself with concurrent kernels, if it has kernels that may run at once and these fit into the
/// memory. Throws what `measure` throws.
void chooseByMeasuring(const PlanContext &context, const Options &options, Decision &decision,
                       const OptimisticPaths &optimistic, const Measure &measure);

}  // namespace weft::decision
