// How long a plan should take as a whole, from the prices of its kernels.
//
// Prices are of kernels alone whose data lie in DRAM. In a graph a kernel finds in the L2 cache
// what an earlier one left there. That does not depend on the choice of layouts enough to be a
// price in the search; it is subtracted here, for the plan as it stands.
//
// Invariant: a function of plan and device alone.
#pragma once

#include "kernel/Device.h"
#include "plan/Plan.h"

namespace weft {

struct GraphPrediction {
  double sumSeconds = 0;        ///< of the kernels' prices
  double reusedBytes = 0;       ///< inputs that earlier kernels of the same call left in L2
  double overwrittenBytes = 0;  ///< temporaries that others were written over while they were in
                                ///< L2, so that they never go to DRAM
  double reuseSeconds = 0;      ///< what both save
  double seconds() const { return sumSeconds - reuseSeconds; }
};

/// `kernels`: indices into the plan's, in the order in which they run.
GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels,
                             const Device &device);
/// Of all kernels of the plan, in its order.
GraphPrediction predictGraph(const Plan &plan, const Device &device);
/// On the plan's device; nothing is found in the L2 of one that is not known.
GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels);

}  // namespace weft
