// From a path of one variant to its plan, with what the plan says of model, device and prices.
#pragma once

#include "plan/PlanBuilder.h"
#include "tools/driver/Compilation.h"

namespace weft::driver {

/// Everything but what emission and build find out. `path`: of the variant's selection graph.
/// Throws Error(unsupported) when its kernels cannot run in so many chunks (PlanChunks.h).
/// `concurrent`: Plan::concurrent.
PlannedKernels planOf(const Compilation &compilation, const SelectedVariant &variant,
                      const select::SelectionResult &path, int chunks = 1, bool concurrent = false);
/// The chosen plan, which alone says the bound: that of the plans of all variants. Every command
/// that speaks of the plan means this one.
PlannedKernels chosenPlan(const Compilation &compilation, const Selected &selected);

/// What --search-memory left out, on one line; empty where the search was whole.
std::string memoryLine(const Selected &selected);

/// Seconds of a variant's plan: of the chosen one those of `plan`, with its chunks, of others as
/// far as they were decided.
double secondsOf(const Selected &selected, const SelectedVariant &variant, const Plan &plan);

/// What the plan makes of one step of its path: the seconds of all its chunks, and how many these
/// are.
struct PlannedStep {
  double seconds = 0;
  int chunks = 0;  ///< 0: nothing runs, parameters are packed when they are loaded
};
/// One for each step of the path.
std::vector<PlannedStep> plannedSteps(const PlannedKernels &planned,
                                      const select::SelectionResult &path);

}  // namespace weft::driver
