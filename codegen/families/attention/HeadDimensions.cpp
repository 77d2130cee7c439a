// Neighbouring head axes as one dimension; see HeadDimensions.h.
#include "codegen/families/attention/HeadDimensions.h"

namespace weft {

std::vector<HeadDimension> headDimensions(const AttentionProblem &problem,
                                          const AttentionTensor &tensor, int64_t packedHeads) {
  std::vector<HeadDimension> dimensions;
  int64_t divisor = 1;
  for (size_t axis = problem.headAxes.size(); axis-- > 0;) {
    const int64_t extent = problem.headExtents[axis], stride = tensor.headStrides[axis];
    if (stride != 0 && divisor >= packedHeads) {
      HeadDimension *last = dimensions.empty() ? nullptr : &dimensions.back();
      if (last && last->divisor * last->extent == divisor && last->stride * last->extent == stride)
        last->extent *= extent;
      else dimensions.push_back({.divisor = divisor, .extent = extent, .stride = stride});
    }
    divisor *= extent;
  }
  return dimensions;
}

std::optional<int64_t> strideOfGroup(const AttentionProblem &problem,
                                     const AttentionTensor &tensor) {
  std::optional<int64_t> least;
  int64_t divisor = 1;
  for (size_t axis = problem.headAxes.size(); axis-- > 0 && divisor < problem.headsOfGroup;) {
    const int64_t stride = tensor.headStrides[axis];
    if (!least) least = stride;
    else if (stride != *least * divisor) return std::nullopt;
    divisor *= problem.headExtents[axis];
  }
  return least;
}

}  // namespace weft
