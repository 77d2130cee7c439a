// Backward passes of fused attentions: every softmax_from_log_sums with the two contractions of
// inputs before it and beside it, the element-wise ops around it and the three contractions behind
// them, if nothing else reads what lies between but one gradient of scores, which a bias
// may get, and a family of the target takes the kernel (kernel/AttentionBackwardRegion.h). All of
// these ops have kernels one by one as well.
#pragma once

#include "passes/fuse/Epilogues.h"

namespace weft {

/// One attempt for each contraction from which element-wise ops lead to the operand of a
/// softmax_from_log_sums: of several, each but one comes from memory. In the order of the ops.
/// Expects FuseOptions::attentionBackwardRejection to be set.
std::vector<EpilogueAttempt> proposeAttentionBackwards(const Dataflow &flow,
                                                       const FuseOptions &options,
                                                       const FusionRules &rules);

}  // namespace weft
