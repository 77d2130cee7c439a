// The checks that verifiers are made of.
#include "ir/Constraints.h"

#include "llvm/ADT/SmallSet.h"

namespace weft {

mlir::InFlightDiagnostic broken(mlir::Operation *op, llvm::StringRef id) {
  return op->emitOpError() << id << ": ";
}

mlir::LogicalResult checkAxis(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                              int64_t axis, mlir::Type type) {
  if (axis < 0 || axis >= rankOf(type))
    return broken(op, id) << "'" << name << "' is axis " << axis << ", but " << type
                          << " has axes 0 to " << rankOf(type) - 1;
  return mlir::success();
}

mlir::LogicalResult checkAxes(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                              llvm::ArrayRef<int64_t> axes, mlir::Type type) {
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t axis : axes) {
    if (mlir::failed(checkAxis(op, id, name, axis, type))) return mlir::failure();
    if (!seen.insert(axis).second)
      return broken(op, id) << "'" << name << "' has axis " << axisNames(type)[axis] << " twice";
  }
  return mlir::success();
}

mlir::LogicalResult checkExtents(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what,
                                 mlir::Type actual, const std::vector<int64_t> &expected) {
  if (extents(actual) != expected)
    return broken(op, id) << what << " is " << actual << ", expected extents ["
                          << llvm::ArrayRef<int64_t>(expected) << "]";
  return mlir::success();
}

mlir::LogicalResult checkElementType(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what,
                                     mlir::Type actual, mlir::Type expected) {
  if (mlir::getElementTypeOrSelf(actual) != mlir::getElementTypeOrSelf(expected))
    return broken(op, id) << what << " is " << actual << ", expected elements of "
                          << mlir::getElementTypeOrSelf(expected);
  return mlir::success();
}

mlir::LogicalResult checkFloats(mlir::Operation *op, llvm::StringRef id) {
  for (mlir::TypeRange types :
       {mlir::TypeRange(op->getOperandTypes()), mlir::TypeRange(op->getResultTypes())})
    for (mlir::Type type : types)
      if (!mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type)))
        return broken(op, id) << type << " is not a tensor of floats";
  return mlir::success();
}

mlir::LogicalResult checkRange(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                               int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return mlir::success();
  mlir::InFlightDiagnostic diagnostic = broken(op, id) << "'" << name << "' is " << value
                                                       << ", must be at least " << low;
  if (high != std::numeric_limits<int64_t>::max()) diagnostic << " and at most " << high;
  return diagnostic;
}

mlir::LogicalResult checkDropout(mlir::Operation *op, double p, int64_t stream) {
  if (!(p >= 0 && p < 1))
    return broken(op, "dropout_c1")
           << "'p' is " << std::to_string(p) << ", must be at least 0 and below 1";
  return checkRange(op, "dropout_c2", "stream", stream, 0, std::numeric_limits<uint32_t>::max());
}

mlir::LogicalResult checkPositive(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                                  double value, bool orZero) {
  if ((value > 0 || (orZero && value == 0)) && std::isfinite(value)) return mlir::success();
  return broken(op, id) << "'" << name << "' is " << std::to_string(value) << ", must be "
                        << (orZero ? "zero or more" : "positive") << " and finite";
}

}  // namespace weft
