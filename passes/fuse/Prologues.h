// Prologue fusion: contractions with the chain of element-wise ops that computes one operand, if no
// other op reads the results of the chain and a family of the target transforms operands
// (kernel/ContractionPrologue.h). Separate kernels for the same ops and for the contraction remain
// candidates.
#pragma once

#include "passes/fuse/Epilogues.h"

namespace weft {

/// Every attempt, contraction by contraction in the order of the ops: the whole chain of each
/// operand, or as much of it next to the contraction as is taken; its last op alone; and the whole
/// chain together with the largest accepted epilogue. `epilogues`: of the same graph. Ops that
/// cannot stand in a prologue by what they are, and results with other readers, are not tried
/// (F022). Expects FuseOptions::prologueRejection to be set.
std::vector<EpilogueAttempt> proposePrologues(const Dataflow &flow, const FuseOptions &options,
                                              const FusionRules &rules,
                                              const std::vector<EpilogueAttempt> &epilogues);

}  // namespace weft
