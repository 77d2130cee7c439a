// A contraction whose groups of axes (kernel/StridedBatchedGemm.h) do not all merge: each operand
// has a short list of extents and strides for each of its groups, and all tensors enumerate a group
// in one order. With one stride a group it is a StridedBatchedGemm.
//
// The order: batch, m and n follow the result's layout; k follows the layout of A or B, whichever
// gives fewer strides in both, A where they are equal.
#pragma once

#include "kernel/StridedBatchedGemm.h"

namespace weft {

/// Axes of a group that merge to one extent with one stride in one operand.
struct StrideFactor {
  int64_t extent = 1, stride = 0;  ///< elements
  std::vector<AxisId> axes = {};   ///< of the kernel, slowest first
  bool operator==(const StrideFactor &) const = default;
};
/// The factors of one group, fastest first, as digits of a mixed-radix index. Empty for a group of
/// extent 1.
using GroupFactors = std::vector<StrideFactor>;

/// By group; a tensor has none for the group that it lacks.
using TensorFactors = std::array<GroupFactors, contractionGroupCount>;

struct MultiStrideGemm {
  std::array<int64_t, contractionGroupCount> extents = {1, 1, 1, 1};
  TensorFactors a, b, c;
  bool operator==(const MultiStrideGemm &) const = default;
};
bool hasSeveralStrides(const TensorFactors &tensor);
bool hasSeveralStrides(const MultiStrideGemm &gemm);

/// Nothing where the kernel does not begin with a contraction of two inputs whose result's axes are
/// those of the first output. A group that merges in a tensor has one factor there.
std::optional<MultiStrideGemm> multiStrideGemm(const Kernel &kernel,
                                               const Configuration &configuration);

/// Extents, and strides of the result where that merges; those of A and B are 0. Nothing where it
/// does not.
std::optional<StridedBatchedGemm> gemmOfResult(const Kernel &kernel,
                                               const Configuration &configuration);

}  // namespace weft
