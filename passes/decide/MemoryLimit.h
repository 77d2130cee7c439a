// --max-memory: plans whose workspace fits, of all variants, of their best paths, and with the
// kernels around the largest temporary in chunks (PlanChunks.h). The workspace holds temporaries
// and what launches work in. Where a variant's best path does not fit and has launches that work in
// memory, the variant is selected again among configurations that work in what the limit leaves
// them, and, if that does not fit, among those that work in none.
#pragma once

#include "passes/decide/Decide.h"

namespace weft::decision {

/// Chooses the plan that is predicted fastest of those with at most `limit` bytes of workspace;
/// variants are then ordered by their fastest such plan, and those that have none are dropped with
/// the reason. Throws Error(unsupported), naming the smallest peak found, when nothing fits.
void chooseWithinMemory(const Problem &problem, const Options &options, Decision &decision,
                        int64_t limit);

}  // namespace weft::decision
