// From an artifact back to planned kernels: its graph gives each kernel's body, its plan the
// layouts and knobs. This is the override path: whatever a person wrote into plan.json or
// kernels/*.cu is taken, or rejected with the reason.
#pragma once

#include "passes/configure/CostModel.h"
#include "plan/PlanBuilder.h"
#include "runtime/artifact/Artifact.h"

#include <string>
#include <vector>

namespace weft::driver {

struct Replanned {
  PlannedKernels planned;
  std::string graph;  ///< graph.mlir with the plan's layouts and configurations
};

/// Throws Error(badInput) naming the kernel whose configuration is not legal, or where graph and
/// plan do not describe the same kernels. Prices, bytes and the workspace are computed anew.
Replanned replan(const runtime::Artifact &artifact, const CostModel &costModel,
                 const std::string &where);

/// What an artifact is read for. What is looked at may hold edits that are not emitted; what runs
/// may not.
enum class Use { toLook, toRun };
/// Holds an artifact to its graph: its wiring (PlanWiring.h), and what is derived of kernels that
/// were not edited (PlanConsistency.h). Throws Error(badInput) naming the file and the place.
/// replan() checks the same of what it emits again.
void checkArtifact(const runtime::Artifact &artifact, const std::string &where, Use use);

/// What report.json keeps of each kernel, so that emitting again prints the same text: numbers of
/// ops, numbers and names of values.
nlohmann::json numbersReport(const PlannedKernels &planned);

}  // namespace weft::driver
