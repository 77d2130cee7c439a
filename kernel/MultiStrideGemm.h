// A contraction whose groups of axes (kernel/StridedBatchedGemm.h) do not all merge: each operand
// has a short list of extents and strides for each of its groups, and all count an index of a group
// in one order. What one stride each describes is a StridedBatchedGemm.
//
// The order: batch, m and n count as the result lies; k as A or B lies, whichever gives fewer
// strides in both, A where they are equal.
#pragma once

#include "kernel/StridedBatchedGemm.h"

namespace weft {

/// Axes of a group that merge to one extent with one stride in one operand.
struct StrideFactor {
  int64_t extent = 1, stride = 0;  ///< elements
  std::vector<int> axes = {};      ///< of the kernel, slowest first
  bool operator==(const StrideFactor &) const = default;
};
/// Of one group, fastest first: an index counts up in the first, and when that is through, in the
/// next. Empty for a group of extent 1.
using GroupFactors = std::vector<StrideFactor>;

/// By group; a tensor has none for the group that it lacks.
using TensorFactors = std::array<GroupFactors, contractionGroupCount>;

struct MultiStrideGemm {
  std::array<int64_t, contractionGroupCount> extents = {1, 1, 1, 1};
  TensorFactors a, b, c;
  bool operator==(const MultiStrideGemm &) const = default;
};
bool hasSeveralStrides(const TensorFactors &tensor);

/// Nothing where the kernel does not open with a contraction of two inputs whose result's axes are
/// those of the first output. A group that merges in a tensor has one factor there.
std::optional<MultiStrideGemm> multiStrideGemm(const Kernel &kernel,
                                               const Configuration &configuration);

/// Extents, and strides of the result where that merges; those of A and B are 0. Nothing where it
/// does not.
std::optional<StridedBatchedGemm> gemmOfResult(const Kernel &kernel,
                                               const Configuration &configuration);

/// One box that TMA moves, of so many neighbouring indices of a group: its side along
/// each factor. Nothing where a range that begins at a multiple of `side` is no box, because
/// neither divides the other, a factor that is not the slowest or what is left of the side.
std::optional<std::vector<int>> boxSides(const GroupFactors &factors, int64_t side);

}  // namespace weft
