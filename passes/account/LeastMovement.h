// The kernels that a graph would have if only bytes counted: of the proposed fusions those that
// save most, one after another. What `explain MODEL --movement` shows before anything was selected;
// selection knows prices and may choose otherwise. MLIR-free.
#pragma once

#include "passes/fuse/Fusion.h"

namespace weft {

/// Disjoint sets of ops (ascending), every op that computes in one of them, none waiting for
/// another in a circle; in order of their first ops. Of candidates that save equally much the
/// earlier one is taken.
std::vector<std::vector<int>> leastMovementPartition(const Dataflow &flow,
                                                     const FusionResult &fusions);

}  // namespace weft
