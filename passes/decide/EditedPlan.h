// A plan whose layouts or knobs a person edited, decided again: whether each kernel's configuration
// is legal, and what the plan then takes. Nothing is chosen anew. No MLIR.
//
// Invariant: a plan that was not edited comes out as it was, where the prices are the same.
#pragma once

#include "kernel/Expected.h"
#include "passes/configure/CostModel.h"
#include "plan/PlanBuilder.h"

#include <string>

namespace weft::decision {

/// Prices all kernels of a plan, in their configurations, and derives what follows from these: its
/// time, notes, workspaces and their bytes, and what priced it; the lower bound stays as it is.
/// Error(badInput) names the kernel whose configuration is not legal, with legal ones near it, or
/// `file` and the kernel that writes over what it may not; the plan is then priced in part.
Expected<void> priceAgain(PlannedKernels &planned, const CostModel &prices,
                          const std::string &file);

}  // namespace weft::decision
