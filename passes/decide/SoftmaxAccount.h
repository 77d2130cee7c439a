// What the softmax of an attention costs a plan of it, as "Recomposing Softmax Layers" counts
// (sections 3.2 and 3.3): sweeps of the attention matrix, traffic of the statistics of sub-vectors,
// and the time of each step that is a kernel apart. No MLIR.
#pragma once

#include "kernel/DType.h"
#include "plan/PlanBuilder.h"

#include <cstdint>
#include <string>

namespace weft::decision {

/// An attention by itself: the names of its results and its extents.
struct AttentionShape {
  std::string output = {};  ///< name of the second contraction's result
  std::string packed = {};  ///< name of its packed tokens; empty where it is not packed
  DType dtype = DType::f16;
  int64_t queries = 1, keys = 1;
  int64_t heads = 1;  ///< query heads of all batch elements
  int64_t headDim = 1, valueDim = 1;
  bool operator==(const AttentionShape &) const = default;
};

struct SoftmaxAccount {
  /// How often kernels read or write as many elements as there are scores, of scores or of what
  /// becomes of them.
  double sweeps = 0;
  int64_t subVector = 0;        ///< elements; 0: the softmax is not decomposed
  int64_t statisticsBytes = 0;  ///< that kernels move of m', d' and r'
  /// These over what a softmax apart moves, which reads and writes every score once.
  double statisticsShare = 0;
  /// Of kernels that hold local softmax (LS), reduction of sub-vectors (IR) or global scaling (GS)
  /// and no contraction.
  double localSeconds = 0, reductionSeconds = 0, scalingSeconds = 0;
};

/// Of the plan of one attention alone.
SoftmaxAccount softmaxAccount(const PlannedKernels &planned, const AttentionShape &shape);

}  // namespace weft::decision
