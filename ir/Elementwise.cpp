// What all element-wise ops share: building, verification, space; and the constraints of single
// ops.
#include "ir/Constraints.h"

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
      if (tensor > 0 && tensor < builder.result(0) && along) {
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

namespace {

/// Every further operand against operand 0 by `along`: one dimension of operand 0 for each
/// dimension of theirs.
mlir::LogicalResult checkAlong(mlir::Operation *op, llvm::ArrayRef<int64_t> along) {
  const mlir::Type a = op->getOperand(0).getType();
  if (mlir::failed(checkAxes(op, "elementwise_c3", "along", along, a))) return mlir::failure();
  std::vector<int64_t> expected;
  for (int64_t dimension : along) expected.push_back(extents(a)[dimension]);
  for (unsigned operand = 1; operand < op->getNumOperands(); ++operand) {
    const mlir::Type type = op->getOperand(operand).getType();
    if (static_cast<int>(along.size()) != rankOf(type))
      return broken(op, "elementwise_c3")
             << "'along' lists " << along.size() << " axes for " << type;
    if (mlir::failed(checkExtents(op, "elementwise_c4",
                                  operand == 1 ? "the second operand" : "the third operand", type,
                                  expected)))
      return mlir::failure();
  }
  return mlir::success();
}

}  // namespace

mlir::LogicalResult verifyElementwise(mlir::Operation *op, bool ownTypes) {
  const mlir::Type first = op->getOperand(0).getType(), result = op->getResult(0).getType();
  if (mlir::failed(checkExtents(op, "elementwise_c1", "the result", result, extents(first))))
    return mlir::failure();
  if (ownTypes) return mlir::success();
  const auto along = op->getAttrOfType<mlir::DenseI64ArrayAttr>("along");
  if (along && mlir::failed(checkAlong(op, along.asArrayRef()))) return mlir::failure();
  for (mlir::Type type : op->getOperandTypes())
    if (!along &&
        mlir::failed(checkExtents(op, "elementwise_c2", "an operand", type, extents(first))))
      return mlir::failure();
  return allOf(checkFloats(op, "elementwise_c5"),
               checkElementType(op, "elementwise_c5", "the result", result, first));
}

//===-- Constraints of single ops -------------------------------------------------------------===//

mlir::LogicalResult BiasOp::verifyOwnConstraints() {
  return getAlong()
             ? mlir::success()
             : broken(*this, "bias_c1") << "needs 'along': the axes that the bias runs along";
}

mlir::LogicalResult ResidualOp::verifyOwnConstraints() {
  return !getAlong()
             ? mlir::success()
             : broken(*this, "residual_c1") << "both operands are whole tensors; use weft.add";
}

mlir::LogicalResult ScaleOp::verifyOwnConstraints() {
  return getFactor().isFinite() ? mlir::success()
                                : broken(*this, "scale_c1") << "'factor' must be finite";
}

namespace {

mlir::LogicalResult checkWeight(mlir::Operation *op, const std::string &name, double weight) {
  if (weight >= 0 && weight <= 1) return mlir::success();
  return broken(op, name + "_c1") << "'weight' is " << weight << "; must be within 0 and 1";
}

}  // namespace

mlir::LogicalResult AverageOp::verifyOwnConstraints() {
  return checkWeight(*this, "average", getWeight().convertToDouble());
}

mlir::LogicalResult AverageSquareOp::verifyOwnConstraints() {
  return checkWeight(*this, "average_square", getWeight().convertToDouble());
}

mlir::LogicalResult UnscaleOp::verifyOwnConstraints() {
  const mlir::Type f32 = fromDType(getContext(), DType::f32);
  return allOf(checkExtents(*this, "unscale_c1", "the factor", getFactor().getType(), {}),
               checkElementType(*this, "unscale_c2", "the factor", getFactor().getType(), f32),
               checkElementType(*this, "unscale_c2", "the result", getResult().getType(), f32),
               checkFloats(*this, "unscale_c3"));
}

mlir::LogicalResult AdamWStepOp::verifyOwnConstraints() {
  const std::vector<int64_t> whole = extents(getParameter().getType());
  const mlir::Type f32 = fromDType(getContext(), DType::f32);
  for (mlir::Value scalar : {getKeep(), getStepSize(), getEpsilon()})
    if (mlir::failed(checkExtents(*this, "adamw_step_c2", "a scalar", scalar.getType(), {})))
      return mlir::failure();
  for (mlir::Type type : getOperation()->getOperandTypes())
    if (mlir::failed(checkElementType(*this, "adamw_step_c3", "an operand", type, f32)))
      return mlir::failure();
  return allOf(
      checkExtents(*this, "adamw_step_c1", "the mean", getMean().getType(), whole),
      checkExtents(*this, "adamw_step_c1", "the mean of squares", getSquare().getType(), whole),
      checkElementType(*this, "adamw_step_c3", "the result", getResult().getType(), f32));
}

namespace {

mlir::LogicalResult checkNormalize(mlir::Operation *op, const std::string &name,
                                   llvm::ArrayRef<int64_t> along, int64_t count, double epsilon) {
  const mlir::Type f32 = fromDType(op->getContext(), DType::f32);
  for (unsigned operand = 1; operand < op->getNumOperands(); ++operand)
    if (mlir::failed(checkElementType(op, name + "_c1", "a tensor of sums",
                                      op->getOperand(operand).getType(), f32)))
      return mlir::failure();
  if (static_cast<int>(along.size()) == rankOf(op->getOperand(0).getType()))
    return broken(op, name + "_c2") << "sums run along all axes of " << op->getOperand(0).getType()
                                    << "; the normalized ones are left out";
  return allOf(checkRange(op, name + "_c3", "count", count, 1),
               checkPositive(op, name + "_c4", "epsilon", epsilon, true));
}

}  // namespace

mlir::LogicalResult NormalizeOp::verifyOwnConstraints() {
  return checkNormalize(*this, "normalize", getAlong(), getCount(), getEpsilon().convertToDouble());
}

mlir::LogicalResult RmsNormalizeOp::verifyOwnConstraints() {
  return checkNormalize(*this, "rms_normalize", getAlong(), getCount(),
                        getEpsilon().convertToDouble());
}

mlir::LogicalResult SoftmaxFromLogSumsOp::verifyOwnConstraints() {
  const mlir::Type x = getX().getType(), logSums = getLogSums().getType();
  if (rankOf(logSums) + 1 != rankOf(x))
    return broken(*this, "softmax_from_log_sums_c1")
           << "log sums run along " << rankOf(logSums) << " axes of " << x
           << "; all but that of the softmax are expected";
  return checkElementType(*this, "softmax_from_log_sums_c2", "the tensor of log sums", logSums,
                          fromDType(getContext(), DType::f32));
}

mlir::LogicalResult SelectOp::verifyOwnConstraints() {
  const std::vector<int64_t> expected = extents(getCondition().getType());
  return allOf(
      checkElementType(*this, "select_c1", "the condition", getCondition().getType(),
                       fromDType(getContext(), DType::i1)),
      checkExtents(*this, "select_c2", "a", getA().getType(), expected),
      checkExtents(*this, "select_c2", "b", getB().getType(), expected),
      checkElementType(*this, "select_c3", "b", getB().getType(), getA().getType()),
      checkElementType(*this, "select_c3", "the result", getResult().getType(), getA().getType()));
}

mlir::LogicalResult DropoutOp::verifyOwnConstraints() {
  return checkDropout(*this, getP().convertToDouble(), static_cast<int64_t>(getStream()));
}

/// One start along an axis that is not that of pairs; of packed tokens that of positions.
mlir::LogicalResult RotaryOp::verifyStarts() {
  const mlir::Type x = getX().getType();
  if (mlir::failed(
          checkElementType(*this, "elementwise_c5", "the result", getResult().getType(), x)))
    return mlir::failure();
  if (!mlir::isa<mlir::FloatType>(getX().getType().getElementType()))
    return broken(*this, "elementwise_c5") << x << " is not a tensor of floats";
  if (!getStarts() && !getAlong()) return mlir::success();
  if (!getStarts() || !getAlong() || getAlong()->size() != 1)
    return broken(*this, "rotary_c8") << "starts and 'along', the one axis that they run along, go "
                                         "together";
  const int64_t along = (*getAlong())[0];
  if (mlir::failed(checkAxes(*this, "rotary_c8", "along", {int64_t(getDim()), along}, x)))
    return mlir::failure();
  const mlir::Type starts = getStarts().getType();
  return allOf(
      checkExtents(*this, "rotary_c8", "the tensor of starts", starts, {extents(x)[size_t(along)]}),
      checkElementType(*this, "rotary_c8", "the tensor of starts", starts,
                       fromDType(getContext(), DType::i32)));
}

/// A range of an axis that is not that of pairs.
mlir::LogicalResult RotaryOp::verifyRange() {
  const mlir::Type x = getX().getType();
  const int given = getAmong().has_value() + getBegin().has_value() + getEnd().has_value();
  if (given == 0) return mlir::success();
  if (given != 3) return broken(*this, "rotary_c9") << "'among', 'begin' and 'end' go together";
  const auto among = static_cast<int64_t>(*getAmong()), begin = static_cast<int64_t>(*getBegin()),
             end = static_cast<int64_t>(*getEnd());
  if (mlir::failed(checkAxes(*this, "rotary_c9", "among", {int64_t(getDim()), among}, x)))
    return mlir::failure();
  if (begin < 0 || begin >= end || end > extents(x)[size_t(among)])
    return broken(*this, "rotary_c9")
           << "elements " << begin << " up to " << end << " of axis " << axisNames(x)[size_t(among)]
           << "; it has " << extents(x)[size_t(among)];
  return mlir::success();
}

mlir::LogicalResult RotaryOp::verifyOwnConstraints() {
  const mlir::Type x = getX().getType();
  const int64_t position = getPosition(), dim = getDim();
  if (mlir::failed(checkAxis(*this, "rotary_c1", "position", position, x)) ||
      mlir::failed(checkAxis(*this, "rotary_c1", "dim", dim, x)))
    return mlir::failure();
  if (position == dim)
    return broken(*this, "rotary_c1") << "'position' and 'dim' are the same axis";
  if (extents(x)[dim] % 2 != 0)
    return broken(*this, "rotary_c2")
           << "pairs of axis " << axisNames(x)[dim] << " are rotated; its extent "
           << extents(x)[dim] << " is odd";
  if (!rotaryStyleNamed(getStyle()))
    return broken(*this, "rotary_c4")
           << "unknown style \"" << getStyle() << "\"; supported: " << nameOf(RotaryStyle::halved)
           << ", " << nameOf(RotaryStyle::interleaved);
  if (getDirection() && getDirection() != "reverse")
    return broken(*this, "rotary_c5")
           << "unknown direction \"" << *getDirection() << "\"; supported: reverse, or none";
  if (mlir::failed(verifyStarts()) || mlir::failed(verifyRange())) return mlir::failure();
  if (getTurned() &&
      (turnedExtent() < 2 || turnedExtent() % 2 != 0 || turnedExtent() > extents(x)[dim]))
    return broken(*this, "rotary_c6")
           << "'turned' is " << turnedExtent() << "; it is even, and at most " << extents(x)[dim]
           << ", the extent of axis " << axisNames(x)[dim];
  const int64_t given = getOriginal().has_value() + getLow().has_value() + getHigh().has_value();
  if ((given != 0 && given != 3) || (given == 3 && !getFactor()))
    return broken(*this, "rotary_c7")
           << "'original', 'low' and 'high' go together, and with 'factor'";
  if (given == 3 && (static_cast<int64_t>(*getOriginal()) < 1 || getLow()->convertToDouble() <= 0 ||
                     getHigh()->convertToDouble() <= getLow()->convertToDouble()))
    return broken(*this, "rotary_c7")
           << "'original' is at least 1, 'low' above 0 and 'high' above 'low'";
  if (getFactor() &&
      mlir::failed(checkPositive(*this, "rotary_c7", "factor", getFactor()->convertToDouble())))
    return mlir::failure();
  return checkPositive(*this, "rotary_c3", "base", getBase().convertToDouble());
}

namespace {

mlir::LogicalResult checkPart(mlir::Operation *op, const std::string &name) {
  const mlir::Type x = op->getOperand(0).getType(), condition = op->getOperand(1).getType();
  if (!mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(x)))
    return broken(op, name + "_c1") << x << " is not a tensor of floats";
  return allOf(checkElementType(op, name + "_c2", "the condition", condition,
                                fromDType(op->getContext(), DType::i1)),
               checkExtents(op, name + "_c2", "the condition", condition, extents(x)),
               checkElementType(op, name + "_c3", "the result", op->getResult(0).getType(), x));
}

}  // namespace

mlir::LogicalResult KeepIfOp::verifyOwnConstraints() { return checkPart(*this, "keep_if"); }
mlir::LogicalResult ZeroIfOp::verifyOwnConstraints() { return checkPart(*this, "zero_if"); }

}  // namespace weft
