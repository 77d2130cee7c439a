// One kernel of a loaded plan at its true extents, on separate memory: seeded inputs, poisoned
// outputs, the result compared with fp64 on a sample of points. What runs is what the plan runs:
// its cubin, or the library's gemm.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/verify/PointCheck.h"

namespace weft::runtime {

/// `kernel` is what the plan's kernel computes, its inputs and outputs in the plan's order. Nothing
/// for a view, which runs nothing. Throws DriverError if the kernel fails.
std::optional<CheckResult> verifyKernel(const Executor &executor, int index, const Kernel &kernel,
                                        const CheckOptions &options, const cuda::Stream &stream);

}  // namespace weft::runtime
