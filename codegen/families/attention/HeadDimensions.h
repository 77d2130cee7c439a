// The heads of a tensor as dimensions of a tensor map, of what families load and store by TMA.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"

#include <optional>
#include <vector>

namespace weft {

/// One dimension of a tensor map over heads: head / divisor % extent steps by `stride` elements.
struct HeadDimension {
  int64_t divisor = 1, extent = 1, stride = 0;
  bool operator==(const HeadDimension &) const = default;
};
/// Those of a tensor, neighbouring head axes merged where they lie so; without axes that the tensor
/// lacks, and those of packed heads, which have a dimension to themselves. Fastest first.
std::vector<HeadDimension> headDimensions(const AttentionProblem &problem,
                                          const AttentionTensor &tensor, int64_t packedHeads = 1);
/// The stride from a head of a group to the next; nothing where there are several.
std::optional<int64_t> strideOfGroup(const AttentionProblem &problem,
                                     const AttentionTensor &tensor);

}  // namespace weft
