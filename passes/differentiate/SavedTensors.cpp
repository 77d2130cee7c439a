// Kept or recomputed tensors. Recomputation clones the op in front of its first backward reader; the operands of the clone are
// then read by the backward part instead.
#include "passes/differentiate/SavedTensors.h"

#include "kernel/Nearest.h"
#include "passes/Describe.h"

namespace weft {
namespace {

class Saver {
public:
  Saver(GraphOp graph, llvm::ArrayRef<mlir::Operation *> forward)
      : graph(graph), ordered(forward), forward(forward.begin(), forward.end()) {}

  mlir::LogicalResult recompute(const std::vector<std::string> &names) {
    std::map<int, mlir::Value> chosen;  // by position of the op
    for (const std::string &name : names) {
      const auto at = llvm::find_if(ordered, [&](mlir::Operation *op) { return writtenName(op->getResult(0)) == name; });
      if (at == ordered.end())
        return unknown(name);
      mlir::Operation *op = *at;
      if (mlir::cast<WeftOp>(op).operatorClass() != OperatorClass::elementwise)
        return op->emitOpError() << "recompute '" << name << "': only element-wise ops are computed again, to save the "
                                 << "result of others costs less";
      chosen[static_cast<int>(at - ordered.begin())] = op->getResult(0);
    }
    // From last to first: a clone may read what another name recomputes.
    for (const auto &[position, value] : llvm::reverse(chosen))
      if (mlir::failed(cloneFor(value)))
        return mlir::failure();
    return mlir::success();
  }

  /// relu_dx of a gradient that dropout masked may read the dropped activation instead of the activation: they differ in sign
  /// only where the gradient is zero. The forward pass stores that one anyway, for the product that follows.
  void readDroppedActivations() {
    graph.walk([&](ReluDxOp gradient) {
      auto masked = gradient.getDy().getDefiningOp<DropoutOp>();
      if (!masked || forward.contains(masked))
        return;
      for (mlir::Operation *user : gradient.getFrom().getUsers())
        if (auto dropped = mlir::dyn_cast<DropoutOp>(user); dropped && forward.contains(dropped) &&
                                                            dropped.getStream() == masked.getStream() &&
                                                            dropped.getP() == masked.getP()) {
          gradient.getFromMutable().assign(dropped.getResult());
          return;
        }
    });
  }

  void listSaved() {
    llvm::SmallVector<mlir::Attribute> names;
    mlir::Builder builder(graph);
    for (auto [number, op] : llvm::enumerate(ordered))
      for (mlir::Value result : op->getResults())
        if (isSaved(result)) {
          const std::string name = writtenName(result);
          names.push_back(builder.getStringAttr(name.empty() ? "%" + std::to_string(number) : name));
        }
    graph->setAttr(savedName, builder.getArrayAttr(names));
  }

private:
  bool isBackward(mlir::Operation *op) const { return !forward.contains(op) && !mlir::isa<ReturnOp>(op); }
  bool isSaved(mlir::Value value) const { return llvm::any_of(value.getUsers(), [&](auto *user) { return isBackward(user); }); }

  mlir::LogicalResult unknown(const std::string &name) {
    std::vector<std::string> known;
    for (mlir::Operation *op : ordered)
      if (isSaved(op->getResult(0)))
        known.push_back(writtenName(op->getResult(0)));
    return mlir::emitError(graph.getLoc()) << "recompute '" << name << "': no such tensor" << nearestAndKnown(name, known);
  }

  mlir::LogicalResult cloneFor(mlir::Value value) {
    mlir::Operation *first = nullptr;
    for (mlir::Operation *user : value.getUsers())
      if (isBackward(user) && (!first || user->isBeforeInBlock(first)))
        first = user;
    if (!first)
      return value.getDefiningOp()->emitOpError()
             << "recompute '" << writtenName(value) << "': the backward pass does not read it";
    mlir::OpBuilder builder(first);
    mlir::Operation *clone = builder.clone(*value.getDefiningOp());
    clone->setLoc(mlir::NameLoc::get(builder.getStringAttr(writtenName(value) + "_again"), graph.getLoc()));
    value.replaceUsesWithIf(clone->getResult(0), [&](mlir::OpOperand &use) {
      return isBackward(use.getOwner()) && use.getOwner() != clone;
    });
    return mlir::success();
  }

  GraphOp graph;
  llvm::ArrayRef<mlir::Operation *> ordered;
  llvm::DenseSet<mlir::Operation *> forward;
};

}  // namespace

mlir::LogicalResult saveTensors(GraphOp graph, llvm::ArrayRef<mlir::Operation *> forward,
                                const DifferentiateOptions &options) {
  Saver saver(graph, forward);
  saver.readDroppedActivations();
  if (mlir::failed(saver.recompute(options.recompute)))
    return mlir::failure();
  saver.listSaved();
  return mlir::success();
}

}  // namespace weft
