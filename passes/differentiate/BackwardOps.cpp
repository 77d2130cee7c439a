// From the results upwards: an op that a forward result depends on is a forward op, whatever else reads it.
#include "passes/differentiate/BackwardOps.h"

#include "passes/differentiate/SavedTensors.h"

namespace weft {
namespace {

/// Ops that the operands of the terminator at some positions depend on.
llvm::DenseSet<mlir::Operation *> opsBehind(GraphOp graph, llvm::function_ref<bool(unsigned)> isChosen) {
  mlir::Block &body = graph.getBody().front();
  llvm::DenseSet<mlir::Value> needed;
  for (auto [position, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    if (isChosen(static_cast<unsigned>(position)))
      needed.insert(value);
  llvm::DenseSet<mlir::Operation *> ops;
  for (mlir::Operation &op : llvm::reverse(body.without_terminator())) {
    if (!llvm::any_of(op.getResults(), [&](mlir::Value result) { return needed.contains(result); }))
      continue;
    ops.insert(&op);
    needed.insert(op.operand_begin(), op.operand_end());
  }
  return ops;
}

}  // namespace

llvm::DenseSet<mlir::Operation *> backwardOps(GraphOp graph) {
  const auto isForward = [&](unsigned result) {
    const mlir::DictionaryAttr attributes = graph.getResultAttrDict(result);
    return !attributes || attributes.empty() || attributes.contains(lossName);
  };
  llvm::DenseSet<mlir::Operation *> backward = opsBehind(graph, [&](unsigned result) { return !isForward(result); });
  for (mlir::Operation *op : opsBehind(graph, isForward))
    backward.erase(op);
  return backward;
}

}  // namespace weft
