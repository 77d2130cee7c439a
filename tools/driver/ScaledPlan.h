// The plan that was chosen, on small extents: the artifact's own kernels and tensors, with their
// fusions, orders, views, chunks, buffers and concurrency, and with their own knobs wherever these
// are legal there. `verify` runs it whole (ScaledCheck.h).
//
// Invariant: which tensors a kernel reads and writes, and where they lie, is what plan.json says,
// not what the graph implies: a plan whose wiring is wrong computes something else than its graph.
#pragma once

#include "passes/decide/NearestConfiguration.h"
#include "plan/PlanBuilder.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/ScaledGraph.h"

#include <string>
#include <vector>

namespace weft::driver {

struct ScaledPlan {
  PlannedKernels planned;  ///< not emitted
  ScaledGraph graph;
  Dims dims;
  std::vector<decision::OtherKnobs> others;
  std::string unscaled;  ///< why it has its own extents; empty where it has small ones
  double flop = 0;
};

/// The plan on the extents of `scaling`. Throws Error(unsupported) naming the kernel or tensor that
/// has no place on them.
ScaledPlan scaledPlan(const runtime::Artifact &artifact, const Scaling &scaling);

/// Of several sets of small extents that which leaves most kernels their own knobs; of equal ones
/// the oddest, so that tiles, vectors and chunks end within the tensors. Where the graph holds on
/// to its extents, it is taken as it is, if it is small. Throws Error(unsupported) saying why where
/// none of these can be interpreted in reasonable time.
ScaledPlan scaledPlan(const runtime::Artifact &artifact);

/// "b=3 j=131"; "its own extents" of none.
std::string printDims(const Dims &dims);

/// Small extents for the dimensions of a plan: odd multiples of `step`, some beyond `longest`,
/// equal where equal, chunks of more than one index where they were.
Dims smallDims(const Plan &plan, int64_t step, int64_t longest, int64_t batch = 3);

}  // namespace weft::driver
