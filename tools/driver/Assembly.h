// What compile and emit say about the artifact that they wrote, and the kernel programs before printing.
#pragma once

#include "tools/driver/Emission.h"
#include "tools/driver/PlanBuilder.h"

#include <nlohmann/json.hpp>

#include <string>

namespace weft::driver {

/// The kernel program of every launched kernel, before printing.
std::string lowered(const PlannedKernels &planned, const std::string &architecture);

/// One JSON object or a few lines for people about what was just written.
nlohmann::json summaryJson(const runtime::Plan &plan, const BuildSummary &build, const std::string &folder);
std::string summaryText(const runtime::Plan &plan, const BuildSummary &build, const std::string &folder);

/// "total 199.6 us estimated on h200   lower bound of all variants 196.4 us   plan is 1.6% above it", and a line of the plan as one
/// graph where kernels find data in L2 (runtime/GraphPrediction.h).
std::string totalLine(const runtime::Plan &plan);
/// The plan as one graph, whose kernels find data in L2: seconds, bytes found there, bytes that never leave it.
nlohmann::json graphJson(const runtime::Plan &plan);
/// "whole graph 205.1 us (+-0.3%), 1.027x of the predicted sum, on ..." and a line's end; empty if the plan was not timed.
std::string measurementLine(const runtime::Plan &plan);

}  // namespace weft::driver
