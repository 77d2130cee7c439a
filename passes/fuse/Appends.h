// Appends with what computes their tokens: element-wise ops, whose results reach a cache without a
// tensor of tokens between (kernel/Append.h). A kernel that appends walks the tokens, so that every
// op of the chain is computed once at each of them.
#pragma once

#include "passes/fuse/Epilogues.h"

namespace weft {

/// One attempt for each number of ops in front of every append, as long as they are element-wise
/// and nothing else reads what they give. In the order of the ops.
std::vector<EpilogueAttempt> proposeAppends(const Dataflow &flow, const FusionRules &rules);

}  // namespace weft
