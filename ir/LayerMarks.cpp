// Marks of layers; see LayerMarks.h.
#include "ir/LayerMarks.h"

namespace weft {
namespace {

int64_t valueOf(mlir::Attribute mark) {
  const auto number = mlir::dyn_cast_or_null<mlir::IntegerAttr>(mark);
  return number ? number.getInt() : 0;
}

mlir::Attribute markOf(mlir::MLIRContext *context, int64_t layer) {
  return mlir::Builder(context).getI64IntegerAttr(layer);
}

}  // namespace

int64_t layerOf(mlir::Operation *op) {
  if (mlir::isa<KernelOp>(op))
    for (mlir::Operation &inner : op->getRegion(0).front().without_terminator())
      return layerOf(&inner);
  return valueOf(op->getAttr(layerAttribute));
}

int64_t layerOf(mlir::Value value) {
  if (mlir::Operation *op = value.getDefiningOp()) return layerOf(op);
  const auto argument = mlir::cast<mlir::BlockArgument>(value);
  auto graph = mlir::dyn_cast<GraphOp>(argument.getOwner()->getParentOp());
  return graph ? valueOf(graph.getArgAttr(argument.getArgNumber(), layerAttribute)) : 0;
}

void setLayer(mlir::Operation *op, int64_t layer) {
  if (layer == 0) op->removeAttr(layerAttribute);
  else op->setAttr(layerAttribute, markOf(op->getContext(), layer));
}

void setLayer(GraphOp graph, unsigned argument, int64_t layer) {
  if (layer == 0) graph.removeArgAttr(argument, layerAttribute);
  else graph.setArgAttr(argument, layerAttribute, markOf(graph.getContext(), layer));
}

void shiftLayerMarks(GraphOp graph, int64_t by) {
  if (by == 0) return;
  for (unsigned argument = 0; argument < graph.getNumArguments(); ++argument)
    if (const mlir::Attribute mark = graph.getArgAttr(argument, layerAttribute))
      graph.setArgAttr(argument, layerAttribute, markOf(graph.getContext(), valueOf(mark) + by));
  graph.walk([&](mlir::Operation *op) {
    if (const mlir::Attribute mark = op->getAttr(layerAttribute))
      op->setAttr(layerAttribute, markOf(op->getContext(), valueOf(mark) + by));
  });
}

void BuilderOfLayer::notifyOperationInserted(mlir::Operation *op, InsertPoint) {
  if (layer > 0 && !op->hasAttr(layerAttribute)) weft::setLayer(op, layer);
}

}  // namespace weft
