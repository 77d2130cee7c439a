// Which layer of several an op or an argument of a graph belongs to: the integer attribute
// `weft.layer`, from 1 on, of what a model's importer builds for a layer; absent: of none.
//
// Invariant: no name says so. A pass that makes ops for another op marks them as that op is marked:
// it makes them with a BuilderOfLayer, or clones.
#pragma once

#include "ir/Weft.h"

namespace weft {

inline constexpr llvm::StringLiteral layerAttribute = "weft.layer";

/// Of a weft.kernel that of the first op in it; 0: of no layer.
int64_t layerOf(mlir::Operation *op);
/// That of the op that computes it, or of the argument.
int64_t layerOf(mlir::Value value);
/// 0: of none.
void setLayer(mlir::Operation *op, int64_t layer);
void setLayer(GraphOp graph, unsigned argument, int64_t layer);
/// Adds `by` to the layer number of every mark of a graph, of ops and arguments.
void shiftLayerMarks(GraphOp graph, int64_t by);

/// A builder whose ops are of one layer, but for clones of ops that have a mark.
class BuilderOfLayer : public mlir::OpBuilder, private mlir::OpBuilder::Listener {
public:
  /// Before this op, for its layer.
  explicit BuilderOfLayer(mlir::Operation *op) : BuilderOfLayer(op, layerOf(op)) {}
  BuilderOfLayer(mlir::Operation *before, int64_t layer) : OpBuilder(before), layer(layer) {
    setListener(this);
  }
  explicit BuilderOfLayer(mlir::MLIRContext *context, int64_t layer = 0)
      : OpBuilder(context), layer(layer) {
    setListener(this);
  }
  BuilderOfLayer(const BuilderOfLayer &) = delete;
  BuilderOfLayer &operator=(const BuilderOfLayer &) = delete;

  /// Of the ops from here on.
  void setLayer(int64_t number) { layer = number; }

private:
  void notifyOperationInserted(mlir::Operation *op, InsertPoint previous) override;

  int64_t layer = 0;
};

}  // namespace weft
