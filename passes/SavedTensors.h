// What the backward ops of a differentiated graph read of the forward ones: kept, or computed
// again.
#pragma once

#include "ir/TrainingMarks.h"
#include "passes/Rewrites.h"

namespace weft {

/// Attributes of a differentiated graph: the saved tensors (graph), and whose gradient an argument
/// or result is. A result marked as the loss is what is differentiated. What an optimizer adds is
/// in ir/TrainingMarks.h.
inline constexpr llvm::StringLiteral savedName = "weft.saved", gradientOfName = "weft.gradient_of",
                                     lossName = "weft.loss";

/// Clones the ops of `options.recompute` into the backward part, and lists in the graph's attribute
/// `weft.saved` what is read of the others. A diagnostic for a name that is no saved tensor, or
/// whose op is neither element-wise nor a norm.
mlir::LogicalResult saveTensors(GraphOp graph, llvm::ArrayRef<mlir::Operation *> forward,
                                const DifferentiateOptions &options);

/// The last op that the results of the forward pass need; null where there is none. All ops behind
/// it belong to the backward pass, or to the optimizer.
mlir::Operation *lastForwardOp(GraphOp graph);

/// Names for recompute() that take nothing more to be saved: results of element-wise ops and norms
/// that only the backward pass keeps, computed from what it keeps anyway.
std::vector<std::string> namesThatSaveMemory(GraphOp graph);

/// Lists anew what a rewrite of a differentiated graph leaves to be saved.
void listSavedTensors(GraphOp graph);

}  // namespace weft
