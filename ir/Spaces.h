// Builds iteration spaces out of the dimensions of an op's tensors. Internal to the dialect.
#pragma once

#include "ir/Weft.h"

namespace weft {

/// Tensors of an op are numbered operands first, then results.
class SpaceBuilder {
public:
  explicit SpaceBuilder(mlir::Operation *op) : op(op) {}

  /// An axis through the given places; label and extent are those of the first.
  SpaceBuilder &independent(std::vector<Place> places) {
    return add(space.independent, std::move(places));
  }
  SpaceBuilder &reduced(std::vector<Place> places) { return add(space.reduced, std::move(places)); }
  IterationSpace take() { return std::move(space); }

  int result(int number) const { return static_cast<int>(op->getNumOperands()) + number; }
  mlir::Type type(int tensor) const {
    const int operands = static_cast<int>(op->getNumOperands());
    return tensor < operands ? op->getOperand(tensor).getType()
                             : op->getResult(tensor - operands).getType();
  }

private:
  SpaceBuilder &add(std::vector<SpaceAxis> &axes, std::vector<Place> places) {
    const Place first = places.front();
    axes.push_back({.name = axisNames(type(first.tensor))[first.dimension],
                    .extent = extents(type(first.tensor))[first.dimension],
                    .places = std::move(places)});
    return *this;
  }

  mlir::Operation *op;
  IterationSpace space;
};

/// All tensors listed have the same dimensions in the same order; those in `reducedDimensions` are
/// reduced.
IterationSpace alignedSpace(mlir::Operation *op, const std::vector<int> &tensors,
                            llvm::ArrayRef<int64_t> reducedDimensions = {});

inline int rankOf(mlir::Type type) {
  return static_cast<int>(mlir::cast<mlir::RankedTensorType>(type).getRank());
}

}  // namespace weft
