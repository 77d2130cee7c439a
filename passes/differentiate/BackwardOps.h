// Which ops of a differentiated graph belong to the backward pass. A function of the graph alone, not a mark on its ops:
// rewrites, recomputed clones and seeds of a loss are told apart by what needs them.
#pragma once

#include "ir/Weft.h"

#include "llvm/ADT/DenseSet.h"

namespace weft {

/// Ops that a gradient needs and no result of the forward pass does. Results of the forward pass are those without
/// attributes, and the loss. Empty for a graph without gradients.
llvm::DenseSet<mlir::Operation *> backwardOps(GraphOp graph);

}  // namespace weft
