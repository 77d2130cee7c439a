// A scale that only a contraction feeds becomes the contraction's own factor: no pass over memory
// is left of it.
#include "passes/Rewrites.h"

namespace weft {

int foldScales(GraphOp graph) {
  int folded = 0;
  for (ScaleOp scale : llvm::make_early_inc_range(graph.getBody().front().getOps<ScaleOp>())) {
    auto contract = scale.getX().getDefiningOp<ContractOp>();
    if (!contract || !contract.getResult().hasOneUse() || contract.getType() != scale.getType())
      continue;
    const double before = contract.getScale() ? contract.getScale()->convertToDouble() : 1.0;
    contract.setScaleAttr(
        mlir::Builder(graph).getF64FloatAttr(before * scale.getFactor().convertToDouble()));
    contract->setLoc(scale.getLoc());
    scale.getResult().replaceAllUsesWith(contract.getResult());
    scale.erase();
    ++folded;
  }
  return folded;
}

}  // namespace weft
