// Contractions with what follows them: the sets of ops that one kernel may compute because it has
// the contraction's sums in registers, or sums one of its operands. A separate search, since a
// contraction does not walk its result's iteration space as loops do: what may join is what
// kernel/ContractionRegion.h recognises, and sums beside it, where a kernel family of the target
// takes them.
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
