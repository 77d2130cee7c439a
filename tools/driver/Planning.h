// From a path of one variant to its plan, with what the plan says of model, device and prices.
#pragma once

#include "tools/driver/Compilation.h"
#include "tools/driver/PlanBuilder.h"

namespace weft::driver {

/// Everything but what emission and build find out. `path`: of the variant's selection graph. Throws Error(unsupported)
/// when its kernels cannot run in so many parts (PlanParts.h). `branches`: Plan::branches.
PlannedKernels planOf(const Compilation &compilation, const SelectedVariant &variant, const select::Plan &path, int parts = 1, bool branches = false);
/// The chosen plan, which alone says the bound: that of the plans of all variants.
PlannedKernels chosenPlan(const Compilation &compilation, const Selected &selected);

}  // namespace weft::driver
