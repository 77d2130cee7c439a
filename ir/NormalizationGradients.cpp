// Gradients of softmax and of norms: building, verification, spaces, flop. A norm's gradient reads
// the statistics that the forward op kept; gradients of its parameters reduce over all other axes.
#include "ir/Constraints.h"

namespace weft {
namespace {

llvm::SmallVector<int64_t> allExcept(mlir::Type type, int64_t axis) {
  llvm::SmallVector<int64_t> axes;
  for (int64_t dimension = 0; dimension < rankOf(type); ++dimension)
    if (dimension != axis) axes.push_back(dimension);
  return axes;
}

/// The tensors of a norm's gradient by what they run along: everything, the normalized axis, or the
/// rows.
struct NormTensors {
  std::vector<int> whole, parameters, statistics;
};

/// `reducesRows`: the gradient of parameters; else the normalized axis is reduced.
IterationSpace normGradientSpace(mlir::Operation *op, const NormTensors &tensors,
                                 int64_t normalized, bool reducesRows) {
  SpaceBuilder builder(op);
  for (int dimension = 0, row = 0; dimension < rankOf(builder.type(0)); ++dimension) {
    std::vector<Place> places;
    for (int tensor : tensors.whole) places.push_back({tensor, dimension});
    for (int tensor : dimension == normalized ? tensors.parameters : tensors.statistics)
      places.push_back({tensor, dimension == normalized ? 0 : row});
    row += dimension != normalized;
    if ((dimension == normalized) != reducesRows) builder.reduced(places);
    else builder.independent(places);
  }
  return builder.take();
}

/// Constraints c2 to c5 of the ops on norms; the axis is in range.
mlir::LogicalResult checkTensors(mlir::Operation *op, const std::string &name,
                                 const NormTensors &tensors, int64_t normalized) {
  const SpaceBuilder builder(op);
  const mlir::Type dy = builder.type(0);
  const mlir::RankedTensorType rows = withDType(withoutDimensions(dy, {normalized}), DType::f32);
  for (int tensor : tensors.whole)
    if (mlir::failed(
            checkExtents(op, name + "_c2", "x or the result", builder.type(tensor), extents(dy))))
      return mlir::failure();
  for (int tensor : tensors.parameters)
    if (mlir::failed(checkExtents(op, name + "_c3", "a parameter or its gradient",
                                  builder.type(tensor), {extents(dy)[normalized]})))
      return mlir::failure();
  for (int tensor : tensors.statistics)
    if (mlir::failed(
            checkExtents(op, name + "_c4", "a statistic", builder.type(tensor), extents(rows))) ||
        mlir::failed(checkElementType(op, name + "_c4", "a statistic", builder.type(tensor), rows)))
      return mlir::failure();
  return checkFloats(op, name + "_c5");
}

/// The axis that `axes` leaves, if it leaves exactly one.
mlir::FailureOr<int64_t> normalizedAxis(mlir::Operation *op, const std::string &name,
                                        llvm::ArrayRef<int64_t> axes) {
  const mlir::Type dy = op->getOperand(0).getType();
  if (mlir::failed(checkAxes(op, name + "_c1", "axes", axes, dy))) return mlir::failure();
  for (int64_t dimension = 0; dimension < rankOf(dy); ++dimension)
    if (!llvm::is_contained(axes, dimension) && static_cast<int>(axes.size()) == rankOf(dy) - 1)
      return dimension;
  return broken(op, name + "_c1") << "'axes' must be all axes but the normalized one";
}

/// Of a verified op.
int64_t normalizedAxisOf(mlir::Operation *op, llvm::ArrayRef<int64_t> axes) {
  int64_t dimension = 0;
  while (llvm::is_contained(axes, dimension)) ++dimension;
  return dimension;
}

const NormTensors layerNormDx{.whole = {0, 1, 5}, .parameters = {2}, .statistics = {3, 4}};
NormTensors layerNormDw(LayerNormDwOp op) {
  NormTensors tensors{.whole = {0, 1}, .parameters = {4}, .statistics = {2, 3}};
  if (op.getDbeta()) tensors.parameters.push_back(5);
  return tensors;
}
const NormTensors rmsNormDx{.whole = {0, 1, 4}, .parameters = {2}, .statistics = {3}};
const NormTensors rmsNormDw{.whole = {0, 1}, .parameters = {3}, .statistics = {2}};

}  // namespace

//===-- softmax_dx ----------------------------------------------------------------------------===//

void SoftmaxDxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value dy,
                        mlir::Value y, int64_t axis) {
  buildElementwise(state, {dy, y});
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult SoftmaxDxOp::verifyConstraints() {
  const std::vector<int64_t> expected = extents(getDy().getType());
  return allOf(checkAxis(*this, "softmax_dx_c1", "axis", getAxis(), getDy().getType()),
               checkExtents(*this, "softmax_dx_c2", "y", getY().getType(), expected),
               checkExtents(*this, "softmax_dx_c2", "the result", getResult().getType(), expected),
               checkFloats(*this, "softmax_dx_c3"));
}
IterationSpace SoftmaxDxOp::iterationSpace() {
  return alignedSpace(*this, {0, 1, 2}, {static_cast<int64_t>(getAxis())});
}
double SoftmaxDxOp::flop() { return 4 * elementCount(getDy()); }

//===-- layer_norm_dx and layer_norm_dw -------------------------------------------------------===//

void LayerNormDxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value dy,
                          mlir::Value x, mlir::Value gamma, mlir::Value mean, mlir::Value rstd,
                          int64_t axis) {
  state.addOperands({dy, x, gamma, mean, rstd});
  state.addTypes(x.getType());
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult LayerNormDxOp::verifyConstraints() {
  if (mlir::failed(checkAxis(*this, "layer_norm_dx_c1", "axis", getAxis(), getDy().getType())))
    return mlir::failure();
  return checkTensors(*this, "layer_norm_dx", layerNormDx, getAxis());
}
IterationSpace LayerNormDxOp::iterationSpace() {
  return normGradientSpace(*this, layerNormDx, getAxis(), false);
}
double LayerNormDxOp::flop() { return 9 * elementCount(getDy()); }

void LayerNormDwOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value dy,
                          mlir::Value x, mlir::Value mean, mlir::Value rstd, int64_t normalized,
                          mlir::Type gamma, mlir::Type beta) {
  state.addOperands({dy, x, mean, rstd});
  state.addTypes(gamma);
  if (beta) state.addTypes(beta);
  state.getOrAddProperties<Properties>().axes =
      builder.getDenseI64ArrayAttr(allExcept(dy.getType(), normalized));
}
mlir::LogicalResult LayerNormDwOp::verifyConstraints() {
  const mlir::FailureOr<int64_t> normalized = normalizedAxis(*this, "layer_norm_dw", getAxes());
  return mlir::failed(normalized)
             ? mlir::failure()
             : checkTensors(*this, "layer_norm_dw", layerNormDw(*this), *normalized);
}
IterationSpace LayerNormDwOp::iterationSpace() {
  return normGradientSpace(*this, layerNormDw(*this), normalizedAxisOf(*this, getAxes()), true);
}
double LayerNormDwOp::flop() { return (getDbeta() ? 4 : 3) * elementCount(getDy()); }

//===-- rms_norm_dx and rms_norm_dw -----------------------------------------------------------===//

void RmsNormDxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value dy,
                        mlir::Value x, mlir::Value gamma, mlir::Value rstd, int64_t axis) {
  state.addOperands({dy, x, gamma, rstd});
  state.addTypes(x.getType());
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult RmsNormDxOp::verifyConstraints() {
  if (mlir::failed(checkAxis(*this, "rms_norm_dx_c1", "axis", getAxis(), getDy().getType())))
    return mlir::failure();
  return checkTensors(*this, "rms_norm_dx", rmsNormDx, getAxis());
}
IterationSpace RmsNormDxOp::iterationSpace() {
  return normGradientSpace(*this, rmsNormDx, getAxis(), false);
}
double RmsNormDxOp::flop() { return 7 * elementCount(getDy()); }

void RmsNormDwOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value dy,
                        mlir::Value x, mlir::Value rstd, int64_t normalized, mlir::Type gamma) {
  state.addOperands({dy, x, rstd});
  state.addTypes(gamma);
  state.getOrAddProperties<Properties>().axes =
      builder.getDenseI64ArrayAttr(allExcept(dy.getType(), normalized));
}
mlir::LogicalResult RmsNormDwOp::verifyConstraints() {
  const mlir::FailureOr<int64_t> normalized = normalizedAxis(*this, "rms_norm_dw", getAxes());
  return mlir::failed(normalized) ? mlir::failure()
                                  : checkTensors(*this, "rms_norm_dw", rmsNormDw, *normalized);
}
IterationSpace RmsNormDwOp::iterationSpace() {
  return normGradientSpace(*this, rmsNormDw, normalizedAxisOf(*this, getAxes()), true);
}
double RmsNormDwOp::flop() { return 3 * elementCount(getDy()); }

}  // namespace weft
