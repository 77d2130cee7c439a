// The loss of classification, and its gradient: building, verification, spaces, flop.
#include "ir/Constraints.h"

namespace weft {
namespace {

/// Places of tensors that have all dimensions of x, and of those that lack the axis of classes.
IterationSpace lossSpace(mlir::Operation *op, int64_t axis, const std::vector<int> &whole,
                         const std::vector<int> &rows, bool reducesClasses) {
  SpaceBuilder builder(op);
  for (int dimension = 0, row = 0; dimension < rankOf(builder.type(0)); ++dimension) {
    std::vector<Place> places;
    for (int tensor : whole) places.push_back({tensor, dimension});
    if (dimension == axis) {
      reducesClasses ? builder.reduced(places) : builder.independent(places);
      continue;
    }
    for (int tensor : rows) places.push_back({tensor, row});
    ++row;
    builder.independent(places);
  }
  return builder.take();
}

/// Constraints c1 to c4, which the loss and its gradient share. `statistics`: tensors of fp32 a
/// row.
mlir::LogicalResult checkLoss(mlir::Operation *op, const std::string &name, int64_t axis,
                              mlir::Value labels, mlir::TypeRange statistics, mlir::Type whole) {
  const mlir::Type x = op->getOperand(0).getType();
  if (mlir::failed(checkAxis(op, name + "_c1", "axis", axis, x))) return mlir::failure();
  const mlir::RankedTensorType rows = withDType(withoutDimensions(x, {axis}), DType::f32);
  if (mlir::failed(checkExtents(op, name + "_c2", "the tensor of labels", labels.getType(),
                                extents(rows))) ||
      mlir::failed(checkElementType(op, name + "_c3", "the tensor of labels", labels.getType(),
                                    fromDType(op->getContext(), DType::i32))))
    return mlir::failure();
  for (mlir::Type statistic : statistics)
    if (mlir::failed(
            checkExtents(op, name + "_c2", "a tensor of rows", statistic, extents(rows))) ||
        mlir::failed(checkElementType(op, name + "_c4", "a tensor of rows", statistic, rows)))
      return mlir::failure();
  if (!mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(x)))
    return broken(op, name + "_c4") << x << " is not a tensor of floats";
  return allOf(checkExtents(op, name + "_c2", "the result", whole, extents(x)),
               checkElementType(op, name + "_c4", "the result", whole, x));
}

}  // namespace

void CrossEntropyOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                           mlir::Value labels, int64_t axis) {
  const mlir::RankedTensorType rows = withDType(withoutDimensions(x.getType(), {axis}), DType::f32);
  state.addOperands({x, labels});
  state.addTypes({rows, rows});
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult CrossEntropyOp::verifyConstraints() {
  return checkLoss(*this, "cross_entropy", getAxis(), getLabels(), getResultTypes(),
                   getX().getType());
}
IterationSpace CrossEntropyOp::iterationSpace() {
  return lossSpace(*this, getAxis(), {0}, {1, 2, 3}, true);
}
double CrossEntropyOp::flop() { return 4 * static_cast<double>(elementsOf(getX().getType())); }
mlir::LogicalResult CrossEntropyOp::differentiate(Derivation &derivation) {
  if (derivation.upstream(1).value)
    return emitOpError() << "the logarithms of sums have no derivative; compute them of the logits";
  derivation.give(0, [&] {
    return make<CrossEntropyDxOp>(derivation.operand(0), derivation.operand(1),
                                  derivation.result(1), derivation.upstream(),
                                  static_cast<int64_t>(getAxis()));
  });
  return mlir::success();
}

void CrossEntropyDxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                             mlir::Value labels, mlir::Value logSums, mlir::Value dy,
                             int64_t axis) {
  buildElementwise(state, {x, labels, logSums, dy});
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult CrossEntropyDxOp::verifyConstraints() {
  const llvm::SmallVector<mlir::Type> rows = {getLogSums().getType(), getDy().getType()};
  return checkLoss(*this, "cross_entropy_dx", getAxis(), getLabels(), rows, getResult().getType());
}
IterationSpace CrossEntropyDxOp::iterationSpace() {
  return lossSpace(*this, getAxis(), {0, 4}, {1, 2, 3}, false);
}
double CrossEntropyDxOp::flop() { return 4 * static_cast<double>(elementsOf(getX().getType())); }

}  // namespace weft
