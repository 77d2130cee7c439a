// Expected fills as JSON, and what a plan takes at each of them. No MLIR.
#pragma once

#include "passes/configure/FillLevels.h"
#include "plan/PlanBuilder.h"

#include <nlohmann/json.hpp>

namespace weft::driver {

/// Members: tokens, pairs, and levels where there are any.
nlohmann::json fillJson(const ExpectedFill &fill);
/// Of an object with these members among others; full where they are missing.
ExpectedFill fillFrom(const nlohmann::json &object);

/// By level of curveOf(): tokens, pairs, weight and graphSeconds. `unfilled`: prices at full length
/// of any graph.
nlohmann::json fillsJson(const CostModel &unfilled, const ExpectedFill &fill,
                         const PlannedKernels &planned);

}  // namespace weft::driver
