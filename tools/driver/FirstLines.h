// The summary of a plan: `compile` and `emit` print it after they wrote an artifact, `explain`
// above its table. No MLIR. Invariant: summaryText() is at most summaryLines lines of
// summaryColumns columns, whatever the plan.
#pragma once

#include "runtime/artifact/VerificationRecords.h"
#include "tools/driver/Emission.h"

#include <nlohmann/json.hpp>

#include <string>

namespace weft::driver {

inline constexpr size_t summaryLines = 15, summaryColumns = 80;

/// Model, shape, prices, coverage, plan, time with bounds, where it goes; every line of at most
/// `columns` columns.
std::string headLines(const Plan &plan, const nlohmann::json &report,
                      const runtime::BelievedRecords &records, size_t columns);

/// What the head says: launches, measuredKernels, verifiedKernels (olderVerifiedKernels: by an
/// older verifier alone; failedKernels), predictedGraphSeconds, rooflineSeconds, coverage (null:
/// not known), stages (shares).
nlohmann::json headJson(const Plan &plan, const nlohmann::json &report,
                        const runtime::BelievedRecords &records);

/// The head, the largest loss not fused, warnings (lines that begin with "!"), where it was written
/// and what to try next.
std::string summaryText(const Plan &plan, const nlohmann::json &report,
                        const runtime::BelievedRecords &records, const BuildSummary &build,
                        const std::string &folder);
nlohmann::json summaryJson(const Plan &plan, const nlohmann::json &report,
                           const runtime::BelievedRecords &records, const BuildSummary &build,
                           const std::string &folder);

/// What --verbose adds to the summary: the build, kernel by kernel where registers spill, and every
/// note of the plan.
std::string buildDetails(const Plan &plan, const BuildSummary &build);

/// Warnings as lines of at most `columns` columns, at most `lines` of them; the last says how many
/// more there are.
std::string warningLines(const Plan &plan, const nlohmann::json &report,
                         const runtime::BelievedRecords &records, size_t columns, size_t lines);

}  // namespace weft::driver
