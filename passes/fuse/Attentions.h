// Fused attentions: every online_softmax_contract with the contraction and the element-wise ops
// that make its scores, if nothing else reads what they give and a family of the target takes the
// kernel (kernel/AttentionRegion.h). The op has no kernel by itself: a graph that holds one is
// selected by such a candidate, or not at all.
#pragma once

#include "passes/fuse/Epilogues.h"

namespace weft {

/// One attempt for each contraction from which element-wise ops lead to the scores of an
/// online_softmax_contract: of several, each but one comes from memory. Where none does, an attempt
/// with what makes the scores instead says so (F027). In the order of the ops. Expects
/// FuseOptions::attentionRejection to be set.
std::vector<EpilogueAttempt> proposeAttentions(const Dataflow &flow, const FuseOptions &options,
                                               const FusionRules &rules);

}  // namespace weft
