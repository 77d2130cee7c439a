// Which tensors of a plan share a buffer, and which kernels must wait for which. Where buffers lie:
// BufferPacking.h. No MLIR.
#pragma once

#include "plan/Plan.h"

#include <vector>

namespace weft {

/// Gives every tensor a buffer: arguments, results and temporaries their own, views that of the
/// tensor in `viewOf` (-1: no view), and every kernel that needs one a workspace.
/// `overwritable` lists for each kernel the input tensors that its first output may be written
/// over: it is, if that is a temporary with separate memory that nothing else reads then or
/// later. Then packs them.
void assignBuffers(Plan &plan, const std::vector<int> &viewOf,
                   const std::vector<std::vector<int>> &overwritable);

/// Makes the workspace of a kernel in a packed plan as large as its configuration, which changed,
/// asks for; of a library GEMM the knobs say so, and `bytes` does not count. One that is new or has
/// grown lies behind all other temporaries; none gives its place up.
void resizeWorkspace(Plan &plan, PlanKernel &kernel, int64_t bytes);

/// Fills `after` of every kernel from what it reads and from the memory it shares with kernels
/// before it (plan/PlanLiveness.h). Only direct predecessors that no other predecessor implies
/// are kept.
void orderKernels(Plan &plan);

}  // namespace weft
