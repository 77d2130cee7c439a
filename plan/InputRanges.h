// The valid values of a plan's arguments, derived from the kernels that read them. No MLIR.
#pragma once

#include "passes/select/Problem.h"
#include "plan/Plan.h"

namespace weft {

/// Sets `scale`, `positive` and `range` of every argument and parameter of the plan: weights scaled
/// by 1 / sqrt(summed extents), so that layers keep their scale; indices within their table;
/// lengths from none to all keys. And `range` of indices that some kernel packs.
void setInputRanges(Plan &plan, const select::Problem &problem);

}  // namespace weft
