// In how many slices the kernels around a plan's largest temporary run at once (PlanChunks.h): the
// batch elements or heads of a pipelined plan, as concurrent kernels of one CUDA graph.
//
// The rule of --pipeline auto: of the paths that are about as fast as the best, in every number of
// slices, the one that is predicted to be fastest as one graph (plan/GraphPrediction.h), where it
// is faster than the plan without slices by leastPipelineGain and within the limit of memory. As
// everywhere, an estimate is never compared with a measurement: where the plan without slices is
// measured, so are the slices that may win; `compile --measure` compares the others.
#pragma once

#include "passes/decide/Decide.h"

namespace weft::decision {

/// The share of its time that the plan without slices is to lose: predicted to be as fast, or up to
/// 1% faster, two slices took 5, 22 and 6% longer (fp32 attention, N=512, 4096, 8192, B=4, an
/// H200). At N=1024, predicted to be 14% faster, they took 4% longer, which this does not catch.
constexpr double leastPipelineGain = 0.04;

/// Numbers of slices that are tried; --pipeline N leaves one.
std::vector<int> sliceCounts(const Options &options);

/// Makes the decided plan a pipelined one by the rule above, or as --pipeline N asks; chunks are
/// given up for slices. Throws Error(unsupported) when --pipeline N asks for what none of the paths
/// does, or what needs more memory than is allowed, naming the nearest numbers that run.
void choosePipeline(const PlanContext &context, const Options &options, Decision &decision);

/// What the slices of a decision were chosen from, on one line; empty where there was no choice.
std::string pipelineLine(const Decision &decision);

}  // namespace weft::decision
