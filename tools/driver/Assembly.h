// The kernel programs before printing, and what is said of a plan as one CUDA graph.
#pragma once

#include "plan/PlanBuilder.h"
#include "tools/driver/Emission.h"

#include <nlohmann/json.hpp>

#include <string>

namespace weft::driver {

/// The kernel program of every launched kernel, before printing.
std::string lowered(const PlannedKernels &planned, const std::string &architecture);

/// The plan as one graph, whose kernels find data in L2: seconds, bytes found there, bytes that
/// never leave it.
nlohmann::json graphJson(const Plan &plan);
/// The same in a line, with its end (plan/GraphPrediction.h); empty if they find nothing.
std::string graphLine(const Plan &plan);
/// "whole graph 205.1 us (+-0.3%), 1.027x of the predicted sum, on ..." and a line's end; empty if
/// the plan was not timed.
std::string measurementLine(const Plan &plan);

}  // namespace weft::driver
