// One built kernel on a GPU: inputs uploaded, outputs poisoned, launched, everything downloaded
// again.
#pragma once

#include "codegen/Emit.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/verify/TensorImage.h"

namespace weft::gputest {

struct DropoutKey {
  uint64_t seed = 1, step = 0;
};

struct RunOptions {
  DropoutKey dropout{};
  /// Upload elements of inputs and nothing else, for initcheck: what a kernel should not read stays
  /// uninitialized.
  bool leaveUninitialized = false;
  bool hasFixedBits = true;  ///< isDeterministic() of its knobs: all launches leave the same bits
};

/// `inputs` and `outputs` come back as the GPU left them. Throws DriverError if the kernel fails. A
/// kernel that keeps separate device memory, or works in a workspace, is launched four times, on
/// what those before left in the memory that it keeps and a workspace poisoned anew, so that a
/// block which reads what another has yet to write finds nothing of an earlier launch there; throws
/// Error(checkFailed) where a launch leaves other bits in an output than the first although the
/// bits are fixed, or something was written beside the workspace.
void runOnDevice(const Kernel &kernel, const codegen::EmittedKernel &emitted,
                 const std::string &cubin, std::vector<runtime::TensorImage> &inputs,
                 std::vector<runtime::TensorImage> &outputs, const RunOptions &options,
                 const runtime::cuda::Stream &stream);

}  // namespace weft::gputest
