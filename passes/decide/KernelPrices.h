// Prices of a plan's kernels outside of a search: of a plan that was edited, of its kernels in
// other configurations or at other lengths, and of the whole graph that they make. No MLIR.
#pragma once

#include "passes/configure/CostModel.h"
#include "plan/GraphPrediction.h"
#include "plan/PlanBuilder.h"

#include <vector>

namespace weft::decision {

/// Prices a kernel of a plan again, and says of its entry what follows from its configuration, its
/// ops and the price.
void priceKernelAgain(PlanKernel &entry, ChosenKernel &chosen, const CostModel &prices);
/// What all kernels take by other prices, one by one.
double secondsBy(const CostModel &prices, const std::vector<ChosenKernel> &kernels);
/// Every configuration that the kernel's family has in its layouts, with its price.
std::vector<PricedConfiguration> pricedInItsLayouts(const ChosenKernel &chosen,
                                                    const CostModel &prices);
/// The plan as one graph on its device, kernels in their order.
GraphPrediction graphOf(const Plan &plan);
/// What the plan's kernels take as one graph by these prices.
double graphSecondsBy(const CostModel &prices, const PlannedKernels &planned);

}  // namespace weft::decision
