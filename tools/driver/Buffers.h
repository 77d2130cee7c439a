// Where a plan's tensors lie, and which kernels must wait for which. No MLIR.
#pragma once

#include "runtime/Artifact.h"

#include <vector>

namespace weft::driver {

/// What a temporary of so many bytes takes: whole units of 256 bytes, as cudaMalloc aligns.
int64_t alignedBytes(int64_t bytes);

/// Gives every tensor a buffer: arguments and results their own, temporaries share buffers once their last reader is
/// done (best fit, in kernel order), views the buffer of the tensor in `viewOf` (-1: no view). `overwritable` lists for each
/// kernel the input tensors that its first output may be written over: it is, if that is a temporary with memory of
/// its own that nothing else reads then or later. Sets workspaceBytes.
void assignBuffers(runtime::Plan &plan, const std::vector<int> &viewOf, const std::vector<std::vector<int>> &overwritable);

/// Fills `after` of every kernel from reads and writes of buffers: read after write, write after read, write after write.
/// Only direct predecessors that no other predecessor implies are kept.
void orderKernels(runtime::Plan &plan);

}  // namespace weft::driver
