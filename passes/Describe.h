// A weft.graph (or some of its ops) as plain data. The only place that asks MLIR ops about themselves for the bridge.
#pragma once

#include "passes/fuse/Dataflow.h"

#include "mlir/IR/Operation.h"

#include <vector>

namespace weft {

/// The ops with everything that leaves them marked. Ops without results (expect_close) are left out: what they read leaves.
/// FlowOp::number is the position in the block.
struct DescribedOps {
  Dataflow flow;
  std::vector<mlir::Operation *> ops;    ///< per flow op
  std::vector<mlir::Value> tensors;      ///< per flow tensor
};
DescribedOps describeOps(const std::vector<mlir::Operation *> &ops);

/// All ops of a graph, with every argument as a tensor even where nothing reads it.
DescribedOps describeGraph(mlir::Operation *graph);

/// The name a value was written with ("q"), sanitized to a C identifier; "" for numbered values.
std::string writtenName(mlir::Value value);

}  // namespace weft
