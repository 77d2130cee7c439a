// A weft.graph (or some of its ops) as plain data. The only place that asks MLIR ops about
// themselves for the bridge.
#pragma once

#include "ir/Weft.h"
#include "passes/fuse/Dataflow.h"

#include "mlir/IR/Operation.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// The ops with everything that leaves them marked. Ops without results (expect_close) are left
/// out: what they read leaves. FlowOp::number is the position in the block.
struct DescribedOps {
  Dataflow flow;
  std::vector<mlir::Operation *> ops;  ///< per flow op
  std::vector<mlir::Value> tensors;    ///< per flow tensor
};
DescribedOps describeOps(const std::vector<mlir::Operation *> &ops);

/// All ops of a graph, with every argument as a tensor even where nothing reads it.
DescribedOps describeGraph(mlir::Operation *graph);

/// The entry point that each op of a graph belongs to, by what the graph returns: the first that
/// returns what depends on the op; nothing for what nothing returned depends on. Forward for all
/// others where the graph has one entry point alone.
std::map<mlir::Operation *, std::optional<EntryPointKind>> entryPointsOf(mlir::Operation *graph);

/// The names that describeGraph() gives the arguments.
std::vector<std::string> argumentNames(mlir::Operation *graph);

/// Which arguments are named by the marks of a graph: as next values of which results are, and of
/// whose masters others are (passes/SavedTensors.h). A mark that names no argument is none: the
/// check of all gradients is an update of itself.
class ArgumentMarks {
public:
  explicit ArgumentMarks(GraphOp graph);
  /// The argument whose f32 master an argument is, as argumentNames() has it; empty: of none.
  std::string masterOf(unsigned argument);
  /// The argument whose value in the next step a result is, likewise.
  std::string nextOf(unsigned result);

private:
  std::string named(mlir::Attribute mark) const;

  GraphOp graph;
  std::map<std::string, std::string> nameOf;  ///< of arguments, by the names they are written with
};

/// Every other character than letters and digits as "_".
std::string identifier(llvm::StringRef text);

/// The name a value was written with ("q"), sanitized to a C identifier; "" for numbered values.
std::string writtenName(mlir::Value value);
/// Of an op, for messages: "softmax 'alpha'", or its kind alone.
std::string described(mlir::Operation *op);

}  // namespace weft
