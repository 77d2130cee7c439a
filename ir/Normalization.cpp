// Softmax, norms, reductions and the three steps of the decomposed softmax: building, verification, spaces, flop.
#include "ir/Spaces.h"

namespace weft {
namespace {

double count(mlir::Value value) { return static_cast<double>(elementsOf(value.getType())); }

/// Statistics of rows: the type without the reduced axis, in f32.
mlir::RankedTensorType rowsOf(mlir::Type type, int64_t axis) {
  return withDType(withoutDimensions(type, {axis}), DType::f32);
}

/// A norm: x and y run over all axes, gamma and beta along the reduced one, statistics along the others.
IterationSpace normSpace(mlir::Operation *op, int64_t axis) {
  SpaceBuilder builder(op);
  const int y = builder.result(0);
  for (int dimension = 0, row = 0; dimension < rankOf(builder.type(0)); ++dimension) {
    std::vector<Place> places = {{0, dimension}, {y, dimension}};
    if (dimension == axis) {
      for (int parameter = 1; parameter < y; ++parameter)
        places.push_back({parameter, 0});
      builder.reduced(places);
      continue;
    }
    for (int statistic = 1; statistic < static_cast<int>(op->getNumResults()); ++statistic)
      places.push_back({builder.result(statistic), row});
    ++row;
    builder.independent(places);
  }
  return builder.take();
}

/// One axis of x in sub-vectors: `subvectors` lists tensors that have one element per sub-vector there. That axis and
/// theirs are different axes of the space, both reduced or both independent.
IterationSpace tiledSpace(mlir::Operation *op, int64_t axis, const std::vector<int> &whole,
                          const std::vector<int> &subvectors, bool reduced) {
  SpaceBuilder builder(op);
  const auto placesOf = [](const std::vector<int> &tensors, int dimension) {
    std::vector<Place> places;
    for (int tensor : tensors)
      places.push_back({tensor, dimension});
    return places;
  };
  for (int dimension = 0; dimension < rankOf(builder.type(whole.front())); ++dimension) {
    std::vector<Place> places = placesOf(whole, dimension);
    const std::vector<Place> others = placesOf(subvectors, dimension);
    if (dimension != axis) {
      places.insert(places.end(), others.begin(), others.end());
      builder.independent(places);
    } else {
      builder.independent(others);
      if (reduced)
        builder.reduced(places);
      else
        builder.independent(places);
    }
  }
  return builder.take();
}

}  // namespace

//===-- softmax -------------------------------------------------------------------------------------------------===//

void SoftmaxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x, int64_t axis) {
  buildElementwise(state, x);
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult SoftmaxOp::verify() { return verifyAxis(*this, "softmax_c1", getAxis(), getX().getType()); }
IterationSpace SoftmaxOp::iterationSpace() { return alignedSpace(*this, {0, 1}, {static_cast<int64_t>(getAxis())}); }
double SoftmaxOp::flop() { return 4 * count(getX()); }

//===-- norms ---------------------------------------------------------------------------------------------------===//

void LayerNormOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x, mlir::Value gamma,
                        mlir::Value beta, int64_t axis, double epsilon, bool withStatistics) {
  buildElementwise(state, {x, gamma, beta});
  if (withStatistics)
    state.addTypes({rowsOf(x.getType(), axis), rowsOf(x.getType(), axis)});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.epsilon = builder.getF64FloatAttr(epsilon);
}
mlir::LogicalResult LayerNormOp::verify() { return verifyAxis(*this, "layer_norm_c1", getAxis(), getX().getType()); }
IterationSpace LayerNormOp::iterationSpace() { return normSpace(*this, getAxis()); }
double LayerNormOp::flop() { return 7 * count(getX()); }

void RmsNormOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x, mlir::Value gamma,
                      int64_t axis, double epsilon, bool withStatistics) {
  buildElementwise(state, {x, gamma});
  if (withStatistics)
    state.addTypes(rowsOf(x.getType(), axis));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.epsilon = builder.getF64FloatAttr(epsilon);
}
mlir::LogicalResult RmsNormOp::verify() { return verifyAxis(*this, "rms_norm_c1", getAxis(), getX().getType()); }
IterationSpace RmsNormOp::iterationSpace() { return normSpace(*this, getAxis()); }
double RmsNormOp::flop() { return 4 * count(getX()); }

//===-- reduce --------------------------------------------------------------------------------------------------===//

void ReduceOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef kind, mlir::Value x,
                     llvm::ArrayRef<int64_t> axes, std::optional<DType> dtype) {
  state.addOperands(x);
  const mlir::RankedTensorType result = withoutDimensions(x.getType(), axes);
  state.addTypes(dtype ? withDType(result, *dtype) : result);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.kind = builder.getStringAttr(kind);
  properties.axes = builder.getDenseI64ArrayAttr(axes);
}
mlir::LogicalResult ReduceOp::verify() { return mlir::success(); }
IterationSpace ReduceOp::iterationSpace() {
  SpaceBuilder builder(*this);
  for (int dimension = 0, kept = 0; dimension < rankOf(getX().getType()); ++dimension) {
    if (llvm::is_contained(getAxes(), dimension))
      builder.reduced({{0, dimension}});
    else
      builder.independent({{0, dimension}, {1, kept++}});
  }
  return builder.take();
}
double ReduceOp::flop() { return count(getX()); }

//===-- decomposed softmax --------------------------------------------------------------------------------------===//

void LocalSoftmaxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x, int64_t axis,
                           int64_t tile) {
  const int64_t subvectors = (extents(x.getType())[axis] + tile - 1) / tile;
  const mlir::Type statistics = withDType(withExtent(x.getType(), axis, subvectors, "n"), DType::f32);
  buildElementwise(state, x);
  state.addTypes({statistics, statistics});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.tile = builder.getI64IntegerAttr(tile);
}
mlir::LogicalResult LocalSoftmaxOp::verify() {
  return verifyAxis(*this, "local_softmax_c1", getAxis(), getX().getType());
}
IterationSpace LocalSoftmaxOp::iterationSpace() { return tiledSpace(*this, getAxis(), {0, 1}, {2, 3}, true); }
double LocalSoftmaxOp::flop() { return 4 * count(getX()); }

void ReduceSubvectorsOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value maxima,
                               mlir::Value sums, int64_t axis) {
  buildElementwise(state, {maxima, sums});
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult ReduceSubvectorsOp::verify() {
  return verifyAxis(*this, "reduce_subvectors_c1", getAxis(), getMaxima().getType());
}
IterationSpace ReduceSubvectorsOp::iterationSpace() {
  return alignedSpace(*this, {0, 1, 2}, {static_cast<int64_t>(getAxis())});
}
double ReduceSubvectorsOp::flop() { return 6 * count(getMaxima()); }

void GlobalScalingOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x, mlir::Value factors,
                            int64_t axis, int64_t tile) {
  buildElementwise(state, {x, factors});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.tile = builder.getI64IntegerAttr(tile);
}
mlir::LogicalResult GlobalScalingOp::verify() {
  return verifyAxis(*this, "global_scaling_c1", getAxis(), getX().getType());
}
IterationSpace GlobalScalingOp::iterationSpace() { return tiledSpace(*this, getAxis(), {0, 2}, {1}, false); }
double GlobalScalingOp::flop() { return count(getX()); }

}  // namespace weft
