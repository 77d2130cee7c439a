// What all element-wise ops share: building, verification, space; and the masks' builders.
#include "ir/Spaces.h"

namespace weft {

void buildElementwise(mlir::OperationState &state, mlir::ValueRange operands) {
  state.addOperands(operands);
  state.addTypes(operands.front().getType());
}

IterationSpace elementwiseSpace(mlir::Operation *op) {
  const auto along = op->getAttrOfType<mlir::DenseI64ArrayAttr>("along");
  SpaceBuilder builder(op);
  const int rank = rankOf(builder.type(0));
  for (int dimension = 0; dimension < rank; ++dimension) {
    std::vector<Place> places;
    for (int tensor = 0; tensor <= builder.result(0); ++tensor) {
      if (tensor == 1 && along) {
        const auto at = llvm::find(along.asArrayRef(), dimension);
        if (at != along.asArrayRef().end())
          places.push_back({tensor, static_cast<int>(at - along.asArrayRef().begin())});
      } else if (extents(builder.type(tensor)) == extents(builder.type(0))) {
        places.push_back({tensor, dimension});
      }
    }
    builder.independent(places);
  }
  return builder.take();
}

mlir::LogicalResult verifyElementwise(mlir::Operation *op) { return mlir::success(); }

namespace {

MaskOp makeMask(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x, llvm::StringRef kind, int64_t key,
                std::optional<int64_t> query = std::nullopt, mlir::Value aux = {}) {
  return MaskOp::create(builder, location, x, kind, key, query, aux);
}

}  // namespace

MaskOp MaskOp::causal(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x, int64_t query, int64_t key) {
  return makeMask(builder, location, x, "causal", key, query);
}

MaskOp MaskOp::window(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x, int64_t query, int64_t key,
                      int64_t left, int64_t right) {
  MaskOp op = makeMask(builder, location, x, "window", key, query);
  op.setLeft(left);
  op.setRight(right);
  return op;
}

MaskOp MaskOp::padding(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x, int64_t key,
                       mlir::Value lengths) {
  return makeMask(builder, location, x, "padding", key, std::nullopt, lengths);
}

MaskOp MaskOp::block(mlir::OpBuilder &builder, mlir::Location location, mlir::Value x, int64_t query, int64_t key,
                     int64_t size, mlir::Value table) {
  MaskOp op = makeMask(builder, location, x, "block", key, query, table);
  op.setSize(size);
  return op;
}

}  // namespace weft
