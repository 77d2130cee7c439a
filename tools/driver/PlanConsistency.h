// What a plan says twice must agree: extents and element types also stand in its graph, sizes follow from both. A plan
// that was edited by hand is held against its graph here before anything is emitted from it. No MLIR.
#pragma once

#include "kernel/Kernel.h"
#include "runtime/Artifact.h"

#include <string>

namespace weft::driver {

/// Throws Error(badInput) naming `where` and the tensor whose extents or element type differ from the operand of the
/// graph's kernel. `kernel` has as many operands as `entry`.
void checkOperands(const runtime::Plan &plan, const runtime::PlanKernel &entry, const Kernel &kernel,
                   const std::string &where);

/// Throws Error(badInput) naming `where` and the member: dims and dtype against the tensors, bytes against the extents.
/// Call it after checkOperands, which ties the tensors to the graph.
void checkHeader(const runtime::Plan &plan, const std::string &where);

}  // namespace weft::driver
