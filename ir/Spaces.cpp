// Spaces of ops whose tensors all have the same dimensions.
#include "ir/Spaces.h"

namespace weft {

IterationSpace alignedSpace(mlir::Operation *op, const std::vector<int> &tensors,
                            llvm::ArrayRef<int64_t> reducedDimensions) {
  SpaceBuilder builder(op);
  for (int dimension = 0; dimension < rankOf(builder.type(tensors.front())); ++dimension) {
    std::vector<Place> places;
    for (int tensor : tensors) places.push_back({tensor, dimension});
    if (llvm::is_contained(reducedDimensions, dimension)) builder.reduced(places);
    else builder.independent(places);
  }
  return builder.take();
}

}  // namespace weft
