// Launch checks for what stands in the anonymous namespace of a kernel's text: extents, strides of
// operands, boxes of tensor maps, knobs of the thread mapping, and the size of device memory. The
// plan fixes every one of them, so an edited text that changes one reads or writes out of
// bounds; the checks reject it (kernel/LaunchCheck.h).
//
//   static_assert(gate_b == 114688 && gate_j == 28672, "plan.json: strides of gate");
//
// Not checked are floating-point constants, thresholds of dropout, and the fields of a Tile on
// which no launch depends: the order of tiles, and stages, which the check of shared memory covers.
#pragma once

#include "codegen/Program.h"

namespace weft::codegen {

/// Adds the checks of all constants of `program` that no check of its body names yet, after the
/// present checks. For the pruned program: a check keeps no constant alive.
void addConstantChecks(Program &program);

}  // namespace weft::codegen
