// How long a plan should take as a whole, from the prices of its kernels.
//
// Prices are of kernels alone whose data lie in DRAM. In a graph a kernel finds in the L2 cache
// what an earlier one left there. That does not depend on the choice of layouts enough to be a
// price in the search; it is subtracted here, for the plan as it stands.
//
// Slices of a pipelined plan (PlanChunk::isSlice) run at once. A kernel alone keeps a share of the
// device busy: of a slice PlanChunk::deviceShare, of any other kernel all of it. Kernels whose
// shares add up to no more than the device take no longer together than alone; of more, all get
// slower by the sum. So what does not fill the device is hidden behind other slices, launches
// among it, and no plan takes less than the work of its kernels or than the longest chain of them.
// Every slice but the first costs a fork and a join of the graph. Memory-bound and compute-bound
// kernels are not credited for using different units.
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
  double overlapSeconds = 0;    ///< saved by slices that run at once; less than zero where their
                                ///< paths in the graph cost more
  double seconds() const { return sumSeconds - reuseSeconds - overlapSeconds; }
};

/// `kernels`: indices into the plan's, in the order in which they run.
GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels,
                             const Device &device);
/// Of all kernels of the plan, in its order.
GraphPrediction predictGraph(const Plan &plan, const Device &device);
/// On the plan's device; nothing is found in the L2 of one that is not known.
GraphPrediction predictGraph(const Plan &plan, const std::vector<int> &kernels);

}  // namespace weft
