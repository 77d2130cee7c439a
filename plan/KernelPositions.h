// Positions of the ops of two plans in their graphs; see PlanDifference.h. Equal numbers mean the
// same computation.
#pragma once

#include "plan/Plan.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// What a plan prints behind a contraction that reads its f32 operands as tf32.
inline constexpr std::string_view printedTf32 = " in tf32";

/// One op as a plan prints it, taken apart: "%8, %8 = local_softmax %7 over k".
struct PrintedOp {
  int number = -1;                    ///< of the op in the graph; -1: it has a name instead
  std::string kind;                   ///< "local_softmax over k", "contract \"phbk,phbj->hbjk\""
  std::string precision;              ///< "tf32"; empty: operands are read as they are stored
  std::vector<std::string> operands;  ///< "%7", "%x"
  std::string value;                  ///< name of its first result
};

/// `names`: of the graph's ops by their numbers (opLabels of report.json); without, results go by
/// their numbers.
PrintedOp parseOp(const std::string &line, const nlohmann::json &names);

/// Ops of a plan's kernels, those of the chunks of one kernel once; `names` as above.
std::vector<PrintedOp> opsOf(const Plan &plan, const nlohmann::json &names);

/// Positions of the ops of two plans, each in the order of opsOf.
struct Positions {
  std::vector<int> before, after;
};
Positions positionsOf(const std::vector<PrintedOp> &before, const std::vector<PrintedOp> &after);

}  // namespace weft
