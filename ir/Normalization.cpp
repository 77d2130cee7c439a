// Softmax, norms and reductions: building, verification, spaces, flop.
#include "ir/Constraints.h"
#include "kernel/ReduceKind.h"

namespace weft {
namespace {

/// Statistics of rows: the type without the reduced axis, in f32.
mlir::RankedTensorType rowsOf(mlir::Type type, int64_t axis) {
  return withDType(withoutDimensions(type, {axis}), DType::f32);
}

/// A norm: x and y run over all axes, gamma and beta along the reduced one, statistics along the
/// others.
IterationSpace normSpace(mlir::Operation *op, int64_t axis) {
  SpaceBuilder builder(op);
  const int y = builder.result(0);
  for (int dimension = 0, row = 0; dimension < rankOf(builder.type(0)); ++dimension) {
    std::vector<Place> places = {{0, dimension}, {y, dimension}};
    if (dimension == axis) {
      for (int parameter = 1; parameter < y; ++parameter) places.push_back({parameter, 0});
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

/// Constraints c1 to c7, which layer_norm and rms_norm share.
mlir::LogicalResult checkNorm(mlir::Operation *op, const std::string &name, int64_t axis,
                              const llvm::APFloat &epsilon,
                              std::pair<unsigned, unsigned> statisticsCounts) {
  const mlir::Type x = op->getOperand(0).getType();
  if (mlir::failed(checkAxis(op, name + "_c1", "axis", axis, x))) return mlir::failure();
  for (mlir::Type parameter : llvm::drop_begin(op->getOperandTypes()))
    if (mlir::failed(
            checkExtents(op, name + "_c2", "gamma or beta", parameter, {extents(x)[axis]})))
      return mlir::failure();
  if (mlir::failed(checkExtents(op, name + "_c3", "y", op->getResult(0).getType(), extents(x))))
    return mlir::failure();
  const unsigned statistics = op->getNumResults() - 1;
  if (statistics != statisticsCounts.first && statistics != statisticsCounts.second)
    return broken(op, name + "_c4") << statistics << " statistics; expected "
                                    << statisticsCounts.first << " or " << statisticsCounts.second;
  const mlir::RankedTensorType rows = rowsOf(x, axis);
  for (mlir::Type statistic : llvm::drop_begin(op->getResultTypes()))
    if (mlir::failed(checkExtents(op, name + "_c5", "a statistic", statistic, extents(rows))) ||
        mlir::failed(checkElementType(op, name + "_c5", "a statistic", statistic, rows)))
      return mlir::failure();
  return allOf(checkPositive(op, name + "_c6", "epsilon", epsilon.convertToDouble(), true),
               checkFloats(op, name + "_c7"));
}

}  // namespace

namespace {

/// "y" names the results "y, y_mean, y_rstd".
mlir::Location withStatisticsNamed(mlir::Location location,
                                   llvm::ArrayRef<const char *> statistics) {
  auto named = mlir::dyn_cast<mlir::NameLoc>(location);
  if (!named) return location;
  const std::string own = named.getName().str();
  std::string all = own;
  for (const char *statistic : statistics) all += ", " + own + "_" + statistic;
  return mlir::NameLoc::get(mlir::StringAttr::get(location.getContext(), all), named.getChildLoc());
}

/// Statistics are saved for the backward pass; nothing is differentiated through them.
mlir::LogicalResult requirePlainStatistics(mlir::Operation *op, Derivation &derivation) {
  for (unsigned statistic = 1; statistic < op->getNumResults(); ++statistic)
    if (derivation.upstream(statistic).value)
      return op->emitOpError() << "statistic " << statistic
                               << " of a norm has no derivative; compute it with weft.reduce";
  return mlir::success();
}

}  // namespace

//===-- softmax -------------------------------------------------------------------------------===//

void SoftmaxOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                      int64_t axis) {
  buildElementwise(state, x);
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
}
mlir::LogicalResult SoftmaxOp::verifyConstraints() {
  const mlir::StringAttr emptyRow = getEmptyRowAttr();  // null: an attribute of another kind
  if (!emptyRow || emptyRow.getValue() != "zero")
    return broken(*this, "softmax_c3")
           << "'empty_row' is " << (emptyRow ? "\"" + emptyRow.getValue() + "\"" : "no string")
           << "; supported: zero";
  return allOf(checkAxis(*this, "softmax_c1", "axis", getAxis(), getX().getType()),
               checkExtents(*this, "softmax_c2", "the result", getResult().getType(),
                            extents(getX().getType())),
               checkFloats(*this, "softmax_c4"));
}
IterationSpace SoftmaxOp::iterationSpace() {
  return alignedSpace(*this, {0, 1}, {static_cast<int64_t>(getAxis())});
}
double SoftmaxOp::flop() { return 4 * elementCount(getX()); }
mlir::LogicalResult SoftmaxOp::differentiate(Derivation &derivation) {
  derivation.give(0, [&] {
    return make<SoftmaxDxOp>(derivation.upstream(), derivation.result(),
                             static_cast<int64_t>(getAxis()));
  });
  return mlir::success();
}

//===-- norms ---------------------------------------------------------------------------------===//

void LayerNormOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                        mlir::Value gamma, mlir::Value beta, int64_t axis, double epsilon,
                        bool withStatistics) {
  buildElementwise(state, {x, gamma});
  if (beta) state.addOperands(beta);
  if (withStatistics) state.addTypes({rowsOf(x.getType(), axis), rowsOf(x.getType(), axis)});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.epsilon = builder.getF64FloatAttr(epsilon);
}
mlir::LogicalResult LayerNormOp::verifyConstraints() {
  return checkNorm(*this, "layer_norm", getAxis(), getEpsilon(), {0, 2});
}
IterationSpace LayerNormOp::iterationSpace() { return normSpace(*this, getAxis()); }
double LayerNormOp::flop() { return (getBeta() ? 7 : 6) * elementCount(getX()); }
mlir::Operation *LayerNormOp::keepForBackward() {
  if (!getStatistics().empty()) return *this;
  mlir::OpBuilder builder(*this);
  auto kept = LayerNormOp::create(builder, withStatisticsNamed(getLoc(), {"mean", "rstd"}), getX(),
                                  getGamma(), getBeta(), static_cast<int64_t>(getAxis()),
                                  getEpsilon().convertToDouble(), true);
  kept.getY().setType(mlir::cast<mlir::RankedTensorType>(getY().getType()));
  getY().replaceAllUsesWith(kept.getY());
  erase();
  return kept;
}
mlir::LogicalResult LayerNormOp::differentiate(Derivation &derivation) {
  if (mlir::failed(requirePlainStatistics(*this, derivation))) return mlir::failure();
  const int64_t axis = static_cast<int64_t>(getAxis());
  const Term dy = derivation.upstream(), x = derivation.operand(0), gamma = derivation.operand(1),
             mean = derivation.result(1), rstd = derivation.result(2);
  if (derivation.isWanted(1) || (getBeta() && derivation.isWanted(2))) {
    auto dw = LayerNormDwOp::create(derivation.builder(), derivation.location(), dy.value, x.value,
                                    mean.value, rstd.value, axis, getGamma().getType(),
                                    getBeta() ? getBeta().getType() : mlir::Type());
    derivation.give(1, [&] { return Term{&derivation, dw.getDgamma(), {}}; });
    if (getBeta()) derivation.give(2, [&] { return Term{&derivation, dw.getDbeta(), {}}; });
  }
  derivation.give(0, [&] { return make<LayerNormDxOp>(dy, x, gamma, mean, rstd, axis); });
  return mlir::success();
}

void RmsNormOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, mlir::Value x,
                      mlir::Value gamma, int64_t axis, double epsilon, bool withStatistics) {
  buildElementwise(state, {x, gamma});
  if (withStatistics) state.addTypes(rowsOf(x.getType(), axis));
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.axis = builder.getI64IntegerAttr(axis);
  properties.epsilon = builder.getF64FloatAttr(epsilon);
}
mlir::LogicalResult RmsNormOp::verifyConstraints() {
  return checkNorm(*this, "rms_norm", getAxis(), getEpsilon(), {0, 1});
}
IterationSpace RmsNormOp::iterationSpace() { return normSpace(*this, getAxis()); }
double RmsNormOp::flop() { return 4 * elementCount(getX()); }
mlir::Operation *RmsNormOp::keepForBackward() {
  if (!getStatistics().empty()) return *this;
  mlir::OpBuilder builder(*this);
  auto kept =
      RmsNormOp::create(builder, withStatisticsNamed(getLoc(), {"rstd"}), getX(), getGamma(),
                        static_cast<int64_t>(getAxis()), getEpsilon().convertToDouble(), true);
  kept.getY().setType(mlir::cast<mlir::RankedTensorType>(getY().getType()));
  getY().replaceAllUsesWith(kept.getY());
  erase();
  return kept;
}
mlir::LogicalResult RmsNormOp::differentiate(Derivation &derivation) {
  if (mlir::failed(requirePlainStatistics(*this, derivation))) return mlir::failure();
  const int64_t axis = static_cast<int64_t>(getAxis());
  const Term dy = derivation.upstream(), x = derivation.operand(0), gamma = derivation.operand(1),
             rstd = derivation.result(1);
  derivation.give(1, [&] { return make<RmsNormDwOp>(dy, x, rstd, axis, getGamma().getType()); });
  derivation.give(0, [&] { return make<RmsNormDxOp>(dy, x, gamma, rstd, axis); });
  return mlir::success();
}

//===-- reduce --------------------------------------------------------------------------------===//

void ReduceOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef kind,
                     mlir::Value x, llvm::ArrayRef<int64_t> axes, std::optional<DType> dtype) {
  state.addOperands(x);
  const mlir::RankedTensorType result = withoutDimensions(x.getType(), axes);
  state.addTypes(dtype ? withDType(result, *dtype) : result);
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.kind = builder.getStringAttr(kind);
  properties.axes = builder.getDenseI64ArrayAttr(axes);
}
mlir::LogicalResult ReduceOp::verifyConstraints() {
  if (!reduceKindNamed(std::string_view(getKind())))
    return broken(*this, "reduce_c2")
           << "unknown kind \"" << getKind() << "\"; supported: sum, max";
  if (getAxes().empty()) return broken(*this, "reduce_c1") << "'axes' is empty";
  if (mlir::failed(checkAxes(*this, "reduce_c1", "axes", getAxes(), getX().getType())))
    return mlir::failure();
  return allOf(checkExtents(*this, "reduce_c3", "the result", getResult().getType(),
                            extents(withoutDimensions(getX().getType(), getAxes()))),
               checkFloats(*this, "reduce_c4"));
}
IterationSpace ReduceOp::iterationSpace() {
  SpaceBuilder builder(*this);
  for (int dimension = 0, kept = 0; dimension < rankOf(getX().getType()); ++dimension) {
    if (llvm::is_contained(getAxes(), dimension)) builder.reduced({{0, dimension}});
    else builder.independent({{0, dimension}, {1, kept++}});
  }
  return builder.take();
}
double ReduceOp::flop() { return elementCount(getX()); }
/// A maximum hands its gradient to all elements that attain it, in equal shares.
mlir::LogicalResult ReduceOp::differentiate(Derivation &derivation) {
  llvm::SmallVector<int64_t> kept;
  for (int64_t dimension = 0; dimension < rankOf(getX().getType()); ++dimension)
    if (!llvm::is_contained(getAxes(), dimension)) kept.push_back(dimension);
  const Term dy = derivation.upstream(), x = derivation.operand(0), y = derivation.result();
  derivation.give(0, [&] {
    if (reduceKindNamed(std::string_view(getKind())) == ReduceKind::sum)
      return make<BroadcastOp>(dy, llvm::ArrayRef<int64_t>(kept), getX().getType());
    const Term attains = make<EqualOp>(x, y, llvm::ArrayRef<int64_t>(kept));
    auto ties = ReduceOp::create(derivation.builder(), derivation.location(),
                                 nameOf(ReduceKind::sum), attains.value, getAxes());
    const Term share = dy / Term{&derivation, ties.getResult(), {}};
    return attains *
           Term{&derivation, share.value, mlir::DenseI64ArrayAttr::get(getContext(), kept)};
  });
  return mlir::success();
}

}  // namespace weft
