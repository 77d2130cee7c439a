// The three steps of the decomposed softmax: local softmax of
// sub-vectors, reduction over sub-vectors, global scaling.
#include "ir/Constraints.h"

namespace weft {
namespace {

/// One f32 value per sub-vector of `tile` elements; the last may be shorter.
mlir::RankedTensorType statisticsOf(mlir::Type type, int64_t axis, int64_t tile) {
  const int64_t extent = extents(type)[axis];
  return withDType(withExtent(type, axis, extent / tile + (extent % tile != 0), "n"), DType::f32);
}

/// One axis of x in sub-vectors: `subvectors` lists tensors that have one element per sub-vector
/// there. That axis and theirs are different axes of the space, both reduced or both independent.
IterationSpace tiledSpace(mlir::Operation *op, int64_t axis, const std::vector<int> &whole,
                          const std::vector<int> &subvectors, bool reduced) {
  SpaceBuilder builder(op);
  const auto placesOf = [](const std::vector<int> &tensors, int dimension) {
    std::vector<Place> places;
    for (int tensor : tensors) places.push_back({tensor, dimension});
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
      if (reduced) builder.reduced(places);
      else builder.independent(places);
    }
  }
  return builder.take();
}

}  // namespace

void LocalSoftmaxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                           int64_t axis, int64_t tile) {
  const mlir::Type statistics = statisticsOf(x.getType(), axis, tile);
  buildElementwise(state, x);
  state.addTypes({statistics, statistics});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.tile = builder.getI64IntegerAttr(tile);
}
mlir::LogicalResult LocalSoftmaxOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  const int64_t tile = getTile();
  if (mlir::failed(checkAxis(*this, "local_softmax_c1", "axis", getAxis(), x)) ||
      mlir::failed(checkRange(*this, "local_softmax_c2", "tile", tile, 1)))
    return mlir::failure();
  const mlir::RankedTensorType statistics = statisticsOf(x, getAxis(), tile);
  for (mlir::Value statistic : {mlir::Value(getMaxima()), mlir::Value(getSums())})
    if (mlir::failed(checkExtents(*this, "local_softmax_c4", "a statistic", statistic.getType(),
                                  extents(statistics))) ||
        mlir::failed(checkElementType(*this, "local_softmax_c4", "a statistic", statistic.getType(),
                                      statistics)))
      return mlir::failure();
  return allOf(checkExtents(*this, "local_softmax_c3", "the result", getExponentials().getType(),
                            extents(x)),
               checkFloats(*this, "local_softmax_c5"));
}
IterationSpace LocalSoftmaxOp::iterationSpace() {
  return tiledSpace(*this, getAxis(), {0, 1}, {2, 3}, true);
}
double LocalSoftmaxOp::flop() { return 4 * elementCount(getX()); }

void ReduceSubvectorsOp::build(mlir::OpBuilder &builder, mlir::OperationState &state,
                               mlir::Value maxima, mlir::Value sums, int64_t axis) {
  buildElementwise(state, {maxima, sums});
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult ReduceSubvectorsOp::verifyConstraints() {
  const mlir::Type maxima = getMaxima().getType();
  if (mlir::failed(checkAxis(*this, "reduce_subvectors_c1", "axis", getAxis(), maxima)))
    return mlir::failure();
  for (mlir::Type type :
       {maxima, mlir::Type(getSums().getType()), mlir::Type(getFactors().getType())})
    if (mlir::failed(checkExtents(*this, "reduce_subvectors_c2", "an operand or result", type,
                                  extents(maxima))) ||
        mlir::failed(checkElementType(*this, "reduce_subvectors_c3", "an operand or result", type,
                                      fromDType(getContext(), DType::f32))))
      return mlir::failure();
  return mlir::success();
}
IterationSpace ReduceSubvectorsOp::iterationSpace() {
  return alignedSpace(*this, {0, 1, 2}, {static_cast<int64_t>(getAxis())});
}
double ReduceSubvectorsOp::flop() { return 6 * elementCount(getMaxima()); }

void GlobalScalingOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                            mlir::Value factors, int64_t axis, int64_t tile) {
  buildElementwise(state, {x, factors});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.tile = builder.getI64IntegerAttr(tile);
}
mlir::LogicalResult GlobalScalingOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  const int64_t tile = getTile();
  if (mlir::failed(checkAxis(*this, "global_scaling_c1", "axis", getAxis(), x)) ||
      mlir::failed(checkRange(*this, "global_scaling_c2", "tile", tile, 1)))
    return mlir::failure();
  return allOf(
      checkExtents(*this, "global_scaling_c3", "the tensor of factors", getFactors().getType(),
                   extents(statisticsOf(x, getAxis(), tile))),
      checkExtents(*this, "global_scaling_c4", "the result", getResult().getType(), extents(x)),
      checkFloats(*this, "global_scaling_c5"));
}
IterationSpace GlobalScalingOp::iterationSpace() {
  return tiledSpace(*this, getAxis(), {0, 2}, {1}, false);
}
double GlobalScalingOp::flop() { return elementCount(getX()); }

}  // namespace weft
