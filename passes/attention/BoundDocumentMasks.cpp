// Bounds of segments for the document masks of a fused attention.
//
//   mask document s, segments, fold   ->   bounds = tile_bounds segments
//                                          mask document s, segments, bounds, fold
//
// Invariant: no element changes, since a mask does not read its bounds. Masks of an attention that
// is not folded stay as they are: their kernels would load bounds for nothing.
#include "ir/LayerMarks.h"
#include "kernel/CoordinateExpressions.h"
#include "passes/Describe.h"
#include "passes/SavedTensors.h"

#include "llvm/ADT/STLExtras.h"

#include <vector>

namespace weft {
namespace {

bool isDocument(mlir::Operation *op) {
  auto mask = mlir::dyn_cast<MaskOp>(op);
  return mask && maskKindNamed(mask.getKind()) == MaskShape::Kind::document;
}

/// Whether a fold, or what computes its probabilities again, reads the value as scores, behind
/// element-wise ops at most.
bool isFolded(mlir::Value value) {
  return llvm::any_of(value.getUses(), [](mlir::OpOperand &use) {
    if (use.getOperandNumber() != 0) return false;
    mlir::Operation *reader = use.getOwner();
    if (mlir::isa<OnlineSoftmaxContractOp, SoftmaxFromLogSumsOp>(reader)) return true;
    auto op = mlir::dyn_cast<WeftOp>(reader);
    return op && op.operatorClass() == OperatorClass::elementwise && isFolded(reader->getResult(0));
  });
}

}  // namespace

int boundDocumentMasks(GraphOp graph) {
  std::vector<MaskOp> masks;
  for (MaskOp mask : graph.getBody().front().getOps<MaskOp>())
    if (isDocument(mask) && !mask.getBounds()) masks.push_back(mask);
  std::vector<mlir::Value> bounded;  // segments
  for (MaskOp mask : masks)
    if (isFolded(mask.getResult()) && !llvm::is_contained(bounded, mask.getAux()))
      bounded.push_back(mask.getAux());
  int count = 0;
  for (mlir::Value segments : bounded) {
    BuilderOfLayer builder(graph.getContext(), layerOf(segments));
    if (mlir::Operation *producer = segments.getDefiningOp())
      builder.setInsertionPointAfter(producer);
    else builder.setInsertionPointToStart(&graph.getBody().front());
    const mlir::Location location = mlir::NameLoc::get(
        builder.getStringAttr(writtenName(segments) + "_bounds"), segments.getLoc());
    auto bounds = TileBoundsOp::create(builder, location, segments);
    for (MaskOp mask : masks)
      if (mask.getAux() == segments) mask.setBounds(bounds.getResult()), ++count;
  }
  if (count > 0 && graph->hasAttr(savedName)) listSavedTensors(graph);
  return count;
}

}  // namespace weft
