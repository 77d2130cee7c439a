// Epilogue fusion: the sets of ops that one kernel may compute because it holds the accumulators of
// a contraction in registers, or because it reduces one of its operands. The search is separate
// from that of loops, since a contraction does not walk the iteration space of its result. A set is
// a candidate if kernel/ContractionRegion.h recognises it, with epilogue reductions where a kernel
// family of the target accepts them.
#pragma once

#include "passes/fuse/FusionRules.h"

#include <optional>
#include <vector>

namespace weft {

/// A contraction and ops that follow it, each of which needs its result; or a sum of one of its
/// operands.
struct EpilogueAttempt {
  OpSet ops;
  std::optional<Rejection> rejection = {};
};

/// Every attempt, contraction by contraction in the order of the ops. What is made for sums alone
/// (squares) joins with the sums or not at all. What no family takes is not grown further; of many
/// accepted epilogues of one contraction FuseOptions::maxEpilogues are kept: whole ones first,
/// single ops next, and F070 says so. Expects FuseOptions::epilogueRejection to be set.
std::vector<EpilogueAttempt> proposeEpilogues(const Dataflow &flow, const FuseOptions &options,
                                              const FusionRules &rules);

}  // namespace weft
