// Shared pieces of iteration spaces and verifiers.
#include "ir/Spaces.h"

namespace weft {

IterationSpace alignedSpace(mlir::Operation *op, const std::vector<int> &tensors,
                            llvm::ArrayRef<int64_t> reducedDimensions) {
  SpaceBuilder builder(op);
  for (int dimension = 0; dimension < rankOf(builder.type(tensors.front())); ++dimension) {
    std::vector<Place> places;
    for (int tensor : tensors)
      places.push_back({tensor, dimension});
    if (llvm::is_contained(reducedDimensions, dimension))
      builder.reduced(places);
    else
      builder.independent(places);
  }
  return builder.take();
}

mlir::LogicalResult verifyAxis(mlir::Operation *op, llvm::StringRef constraint, int64_t axis, mlir::Type type) {
  if (axis < 0 || axis >= rankOf(type))
    return op->emitOpError() << constraint << ": axis " << axis << " is out of range for " << type;
  return mlir::success();
}

mlir::LogicalResult verifySameExtents(mlir::Operation *op, llvm::StringRef constraint, mlir::Type expected,
                                      mlir::Type actual, llvm::StringRef what) {
  if (extents(expected) != extents(actual))
    return op->emitOpError() << constraint << ": " << what << " is " << actual << ", expected the extents of "
                             << expected;
  return mlir::success();
}

}  // namespace weft
