// Positions of the ops of two plans in their graphs; see PlanDifference.h. Equal numbers mean the
// same computation.
#pragma once

#include "plan/Plan.h"

#include <string>
#include <vector>

namespace weft {

/// An op of a plan, and what its first result is called.
struct NamedOp {
  PlanOp op;
  int number = -1;    ///< of the op in the graph; -1: it has a name instead
  std::string value;  ///< name of its first result
};

/// `names`: of the graph's ops by their numbers (opLabels of report.json); without, results go by
/// their numbers.
NamedOp namedOp(const PlanOp &op, const nlohmann::json &names);

/// Ops of a plan's kernels, those of the chunks of one kernel once; `names` as above.
std::vector<NamedOp> opsOf(const Plan &plan, const nlohmann::json &names);

/// Positions of the ops of two plans, each in the order of opsOf.
struct Positions {
  std::vector<int> before, after;
};
Positions positionsOf(const std::vector<NamedOp> &before, const std::vector<NamedOp> &after);

}  // namespace weft
