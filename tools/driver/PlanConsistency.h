// What a plan says twice must agree: sizes follow from extents and element types, what emission
// derives from layouts and knobs. A plan that was edited by hand is held to this before anything is
// emitted from it, or told of it. No MLIR.
#pragma once

#include "plan/PlanBuilder.h"

#include <string>

namespace weft::driver {

/// Throws Error(badInput) naming `where` and the member: dims and dtype against the tensors, bytes
/// against the extents. Call it after checkWiring, which ties the tensors to the graph.
void checkHeader(const Plan &plan, const std::string &where);

/// Throws Error(badInput) naming `where`, the kernel and the member: what emission derives of a
/// kernel, and its tensors with it, must stand in the plan if the kernel's key says that neither it
/// nor its layouts and knobs were edited since. `planned`: the same kernels, as graph, layouts and
/// knobs say.
void checkUnedited(const Plan &plan, const PlannedKernels &planned, const std::string &where);

/// Throws Error(badInput) naming `where` and the first kernel that was edited since it was emitted:
/// its cubin is of another plan. Kernels of older versions of their family pass.
void checkEmitted(const Plan &plan, const PlannedKernels &planned, const std::string &where);

}  // namespace weft::driver
