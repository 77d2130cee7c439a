// Whole plans timed against each other on one GPU, and which of them to keep.
//
// Invariant: the plan kept is the first, in the order given, that no other beats by more than
// noise; with plans in the order of their predicted times, measurements that say nothing change
// nothing.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/measure/Measure.h"

#include <optional>
#include <string>
#include <vector>

namespace weft::runtime {

/// A plan under the name that messages give it.
struct ComparedPlan {
  std::string name;
  Artifact artifact;
};

/// What was measured of a plan, or why nothing was (it did not fit into the GPU's memory beside the
/// others, a library lacks its algorithm).
struct PlanTime {
  std::optional<Measurement> measurement;
  std::string problem;
};

struct PlanComparison {
  std::vector<PlanTime> times;  ///< in the plans' order
  size_t kept = 0;              ///< index of the plan to keep; it has a measurement
  std::string gpu, protocol;
  ClockSummary clocks;
};

/// Loads all plans, gives them the same random inputs and times each as a whole, as `weft time`
/// does (runtime/measure/TimePlan.h): a call is every entry point of the plan, once. Throws
/// Error(unsupported) with the first plan's problem if no plan can be timed, and DriverError naming
/// plan and kernel if one fails on the GPU.
PlanComparison comparePlans(const cuda::Context &context, std::vector<ComparedPlan> plans,
                            uint64_t seed, const Protocol &protocol);

/// The first plan that no other beats by more than noise: the round by round ratio to the fastest
/// plan reaches 1 within its middle 80%, or its median is within half a percent. `samples`: seconds
/// by plan and round; none for plans that were not timed, of which at least one must have been.
size_t firstUnbeaten(const std::vector<std::vector<double>> &samples);

}  // namespace weft::runtime
