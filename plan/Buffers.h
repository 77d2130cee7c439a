// Which tensors of a plan share a buffer, and which kernels must wait for which. Where buffers lie:
// BufferPacking.h. No MLIR.
#pragma once

#include "plan/Plan.h"

#include <vector>

namespace weft {

/// Gives every tensor a buffer: arguments, results and temporaries their own, views that of the
/// tensor in `viewOf` (-1: no view), and every library GEMM that needs one a workspace.
/// `overwritable` lists for each kernel the input tensors that its first output may be written
/// over: it is, if that is a temporary with separate memory that nothing else reads then or
/// later. Then packs them.
void assignBuffers(Plan &plan, const std::vector<int> &viewOf,
                   const std::vector<std::vector<int>> &overwritable);

/// Fills `after` of every kernel from what it reads and from the memory it shares with kernels
/// before it (plan/PlanLiveness.h). Only direct predecessors that no other predecessor implies
/// are kept.
void orderKernels(Plan &plan);

}  // namespace weft
