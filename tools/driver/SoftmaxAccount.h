// What the softmax of an attention costs a plan of it, as "Recomposing Softmax Layers" counts
// (sections 3.2 and 3.3): sweeps of the attention matrix, traffic of the statistics of sub-vectors,
// and the time of each step that is a kernel apart.
#pragma once

#include "plan/PlanBuilder.h"
#include "tools/driver/AttentionSites.h"

#include <cstdint>

namespace weft::driver {

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
SoftmaxAccount softmaxAccount(const PlannedKernels &planned, const AttentionSite &site);

}  // namespace weft::driver
