// The checks that verifiers are made of. Each takes the id of its constraint in SPEC.md and emits
// it first. Internal to the dialect.
#pragma once

#include "ir/Spaces.h"

namespace weft {

/// 0 <= axis < rank of the type.
mlir::LogicalResult checkAxis(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                              int64_t axis, mlir::Type type);
/// All axes in range, none twice.
mlir::LogicalResult checkAxes(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                              llvm::ArrayRef<int64_t> axes, mlir::Type type);
/// The extents of a tensor are the expected ones.
mlir::LogicalResult checkExtents(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what,
                                 mlir::Type actual, const std::vector<int64_t> &expected);
mlir::LogicalResult checkElementType(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what,
                                     mlir::Type actual, mlir::Type expected);
/// Every operand and result is a tensor of floats.
mlir::LogicalResult checkFloats(mlir::Operation *op, llvm::StringRef id);
/// low <= value <= high.
mlir::LogicalResult checkRange(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                               int64_t value, int64_t low,
                               int64_t high = std::numeric_limits<int64_t>::max());
/// dropout_c1 and dropout_c2 of SPEC.md.
mlir::LogicalResult checkDropout(mlir::Operation *op, double p, int64_t stream);
/// value >= 0 (or > 0) and finite; NaN fails.
mlir::LogicalResult checkPositive(mlir::Operation *op, llvm::StringRef id, llvm::StringRef name,
                                  double value, bool orZero = false);

/// Emits "id: " and returns the diagnostic.
mlir::InFlightDiagnostic broken(mlir::Operation *op, llvm::StringRef id);

/// The first failure among checks that each emitted their own diagnostic.
template <typename... Results>
mlir::LogicalResult allOf(Results... results) {
  return mlir::success((mlir::succeeded(results) && ...));
}

}  // namespace weft
