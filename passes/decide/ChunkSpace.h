// What a profile measures for a chosen plan, because the measurements of whole kernels do not serve
// it: kernels that run in chunks, which are smaller than any of the graph; kernels whose operands
// are strided views, which are priced as contiguous until measured; and kernels that were measured
// with an older text, in the chosen configuration.
#pragma once

#include "passes/decide/ProfileSpace.h"
#include "plan/PlanBuilder.h"

#include <functional>

namespace weft::decision {

/// Whether a measured kernel would get another text now than the one that was measured.
using IsOfOlderText = std::function<bool(const ChosenKernel &)>;

/// The kernels of the plans that run in chunks or have strided views, in the plan's layouts: for
/// emitted kernels the plan's knobs and the model's `mostKnobs` best, for library GEMMs every
/// algorithm. Of other kernels the measured configurations that are of an older text.
ProfileSpace chunkSpace(const std::vector<PlannedKernels> &plans, const CostModel &model,
                        const ProfileSpaceOptions &options, const IsOfOlderText &isOfOlderText);

}  // namespace weft::decision
