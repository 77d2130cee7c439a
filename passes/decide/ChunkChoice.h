// In how many chunks the kernels around a plan's largest temporary run (PlanChunks.h) without
// --chunks: a choice by time and memory.
//
// The rule: a plan needs no more memory than a framework that runs op by op with a fused attention
// (FrameworkMemory.h), or than the L2 holds. The fastest such plan is chosen if it is predicted at
// most `mostSlower` slower than the fastest of all, else the smallest plan that is. If the plan
// without chunks is within the limit, no chunks are considered. `--chunks 1` chooses by time alone.
// Predictions are of whole graphs (plan/GraphPrediction.h): small chunks launch more kernels and
// each uses the GPU less well, but they find in L2 what a whole tensor of scores loads from DRAM.
// As everywhere, an estimate is never compared with a measurement: where the whole is measured, so
// are the chunks that may win.
#pragma once

#include "passes/decide/Decide.h"
#include "plan/PlanChunks.h"

#include <span>

namespace weft::decision {

/// The paths of all variants among which chooseChunks() chooses: so many, and no slower than this
/// share.
constexpr select::Compared comparedPaths = {.plans = 4, .within = 0.02};

/// Numbers of chunks that are tried, up to all heads of a large model one by one; --chunks leaves
/// one.
std::vector<int> chunkCounts(const Options &options);

/// The ways in which the path's kernels run, in the order of chunkCounts(), until they get much
/// slower. Those that cannot are left out; `rejection` gets the reason of the first.
std::vector<PricedChunking> pricedChunkings(const PlanContext &context, const Options &options,
                                            const SelectedVariant &variant,
                                            const select::SelectionResult &path,
                                            std::string &rejection);

/// The rule above, over what was priced, or over what of it is measured if anything is; of equals
/// the first. `priced` is not empty. `freeBytes`: workspace that any plan may take.
size_t preferred(std::span<const PricedChunking> priced, double freeBytes);

/// Chooses path and chunks by the rule above among the paths of all variants that are about as fast
/// as the best. Throws Error(unsupported) when --chunks asks for what none of them does.
void chooseChunks(const PlanContext &context, const Options &options, Decision &decision);

}  // namespace weft::decision
