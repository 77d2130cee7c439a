// In how many chunks the kernels around a plan's largest temporary run (PlanChunks.h) without
// --chunks: a choice by time and memory.
//
// The rule: a plan needs no more memory than a framework that runs op by op with a fused attention
// (FrameworkMemory.h), or than the L2 holds, as far as that costs no more time than
// Options::memoryTrade allows: of the plans that are predicted at most this share slower than the
// fastest, the fastest one within that memory is chosen, else the smallest. With 0, the default,
// this is the fastest of all. If the plan without chunks is within the memory, no chunks are
// considered.
// Predictions are of whole graphs (plan/GraphPrediction.h): small chunks launch more kernels and
// each uses the GPU less well, but they find in L2 what a whole tensor of scores loads from DRAM.
// As everywhere, an estimate is never compared with a measurement: where the whole is measured, so
// are the chunks that may win.
#pragma once

#include "passes/decide/Decide.h"

#include <span>

namespace weft::decision {

/// The paths of all variants among which chooseChunks() chooses: so many, and no slower than this
/// share.
constexpr select::Compared comparedPaths = {.plans = 4, .within = 0.02};
/// Where memory counts: also the best paths of variants that are slower.
constexpr select::Compared comparedByMemory = {.plans = 4, .within = 0.02, .ofAll = true};

/// Numbers of chunks that are tried, up to all heads of a large model one by one; --chunks leaves
/// one.
std::vector<int> chunkCounts(const Options &options);

/// The ways in which the path's kernels run, in the order of chunkCounts(), until they get much
/// slower. Those that cannot are left out; `rejection` gets the reason of the first.
std::vector<PricedChunking> pricedChunkings(const PlanContext &context, const Options &options,
                                            const SelectedVariant &variant,
                                            const select::SelectionResult &path,
                                            std::string &rejection);

/// Paths that are about as fast as the best of all variants, best first.
struct NearBestPath {
  size_t variant = 0;  ///< of Decision::variants
  select::SelectionResult path;
};
std::vector<NearBestPath> nearBestPaths(const Options &options, const Decision &decision);

/// Whether the kernels of a plan are all priced by measurements.
bool isMeasured(const PlannedKernels &planned);

/// The rule above, over what was priced, or over what of it is measured if anything is; of equals
/// the first. `priced` is not empty. `freeBytes`: workspace that any plan may take. `trade`:
/// Options::memoryTrade.
size_t preferred(std::span<const PricedChunking> priced, double freeBytes, double trade);

/// Chooses path and chunks by the rule above among the paths of all variants that are about as fast
/// as the best. Throws Error(unsupported) when --chunks asks for what none of them does.
void chooseChunks(const PlanContext &context, const Options &options, Decision &decision);

}  // namespace weft::decision
