// What a plan says of the prices that it is by, beside those of its kernels. No MLIR.
#pragma once

#include "passes/configure/CostModel.h"
#include "plan/PlanBuilder.h"

namespace weft::decision {

/// Selection priced strided views as contiguous. A kernel that was measured with strided views
/// takes its fastest such measurement; others keep the contiguous price, and a note says so.
void takeMeasurementsOfStridedViews(PlannedKernels &planned, const CostModel &prices);
/// Notes in the plan, in place of earlier such notes, which kernels sum in a fixed order where
/// another one is legal, or in any order, and what the other way is predicted to take: the price of
/// determinism. Both by the model, measured or not.
void noteDeterminism(PlannedKernels &planned, const CostModel &prices);
/// Says in the plan what priced its kernels: the cost model, described as the analytic one if none
/// of the kernels was measured.
void notePrices(Plan &plan, const CostModel &costModel);

}  // namespace weft::decision
