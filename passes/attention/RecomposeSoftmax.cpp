// Softmax in three steps of which the outer two can join the contractions around it ("Recomposing
// Softmax Layers", sections 3.3 and 6). LS ends the contraction that computes the scores, GS begins
// the one that reads the probabilities, if nothing else reads a result between them:
//
//    scores -> LS -> [dropout] -> GS -> [casts] -> contraction with values
//               |                  ^
//               m', d' --> IR ---> r'
//
// A dropout behind GS multiplies elements, as the factors do, so that it goes before GS: it drops
// exponentials, which have the coordinates, and so the bits, of the probabilities. What the
// backward pass reads of the probabilities it scales and drops again: all that is saved are the
// exponentials, which the forward pass stores anyway, and the factors, 1 / tile of them.
#include "ir/LayerMarks.h"
#include "passes/Rewrites.h"

#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/SavedTensors.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/DenseSet.h"

namespace weft {
namespace {

class Recomposition {
public:
  explicit Recomposition(SoftmaxOp softmax)
      : softmax(softmax), graph(mlir::cast<GraphOp>(softmax->getParentOp())) {
    if (!graph->hasAttr(savedName)) return;
    const mlir::Operation *last = lastForwardOp(graph);
    bool isBehind = !last;
    for (mlir::Operation &op : graph.getBody().front().without_terminator()) {
      if (isBehind) backward.insert(&op);
      isBehind = isBehind || &op == last;
    }
  }

  std::string rejection() {
    if (!graph->hasAttr(savedName)) return forwardRejection(softmax);
    return attentionRejection(softmax.getResult(), static_cast<int64_t>(softmax.getAxis()),
                              Gates::stay,
                              [&](mlir::Operation *op) { return !backward.contains(op); });
  }

  void rewrite(int64_t tile) {
    if (!graph->hasAttr(savedName)) commuteGates(softmax);
    scaling = decomposeSoftmax(softmax, tile);
    const std::vector<mlir::Operation *> chain = forwardChain();
    makeAgain(chain);
    if (chain.size() > 1)
      if (auto dropout = mlir::dyn_cast<DropoutOp>(chain[1])) dropBefore(dropout);
    if (!backward.empty()) listSavedTensors(graph);
  }

private:
  bool isForward(mlir::Operation *op) const { return !backward.contains(op); }

  /// The scaling, and behind it the casts and the dropout that the forward pass has.
  std::vector<mlir::Operation *> forwardChain() {
    std::vector<mlir::Operation *> chain{scaling};
    for (;;) {
      mlir::Operation *reader = *llvm::find_if(chain.back()->getUsers(),
                                               [&](mlir::Operation *op) { return isForward(op); });
      if (!mlir::isa<CastOp, DropoutOp>(reader)) return chain;
      chain.push_back(reader);
    }
  }

  /// The chain once more for the backward pass, as far as that reads it.
  void makeAgain(const std::vector<mlir::Operation *> &chain) {
    mlir::Operation *first = nullptr;
    for (mlir::Operation *op : chain)
      for (mlir::Operation *user : op->getUsers())
        if (!isForward(user) && (!first || user->isBeforeInBlock(first))) first = user;
    if (!first) return;
    BuilderOfLayer builder(first);
    mlir::IRMapping again;
    std::vector<mlir::Operation *> clones;
    for (mlir::Operation *op : chain) {
      clones.push_back(builder.clone(*op, again));
      if (const std::string name = writtenName(op->getResult(0)); !name.empty())
        clones.back()->setLoc(mlir::NameLoc::get(
            mlir::StringAttr::get(graph.getContext(), name + "_again"), graph.getLoc()));
    }
    for (mlir::Operation *op : chain)
      op->getResult(0).replaceUsesWithIf(again.lookup(op->getResult(0)), [&](mlir::OpOperand &use) {
        return backward.contains(use.getOwner());
      });
    for (mlir::Operation *clone : llvm::reverse(clones))
      if (clone->use_empty()) clone->erase();
  }

  /// GS, dropout -> dropout of the exponentials, GS.
  void dropBefore(DropoutOp dropout) {
    BuilderOfLayer builder(scaling);
    mlir::IRMapping exponentials;
    exponentials.map(scaling.getResult(), scaling.getX());
    mlir::Operation *dropped = builder.clone(*dropout, exponentials);
    dropped->setLoc(mlir::NameLoc::get(
        mlir::StringAttr::get(graph.getContext(), "kept_exponentials"), graph.getLoc()));
    mlir::Value scaled = GlobalScalingOp::create(
        builder, dropout.getLoc(), dropped->getResult(0), scaling.getFactors(),
        static_cast<int64_t>(scaling.getAxis()), static_cast<int64_t>(scaling.getTile()));
    dropout.getResult().replaceAllUsesWith(scaled);
    dropout->erase();
    scaling->erase();
  }

  SoftmaxOp softmax;
  GraphOp graph;
  GlobalScalingOp scaling;
  llvm::DenseSet<mlir::Operation *> backward;
};

}  // namespace

std::string recomposeRejection(SoftmaxOp softmax) { return Recomposition(softmax).rejection(); }

void recomposeSoftmax(SoftmaxOp softmax, int64_t tile) {
  Recomposition recomposition(softmax);
  if (std::string rejection = recomposition.rejection(); !rejection.empty())
    throw Error::checkFailed("a softmax that cannot be recomposed: {}", rejection);
  recomposition.rewrite(tile);
}

int recomposeSoftmaxes(GraphOp graph, int64_t tile) {
  int count = 0;
  for (SoftmaxOp softmax : llvm::make_early_inc_range(graph.getBody().front().getOps<SoftmaxOp>()))
    if (recomposeRejection(softmax).empty()) {
      recomposeSoftmax(softmax, tile);
      ++count;
    }
  return count;
}

}  // namespace weft
