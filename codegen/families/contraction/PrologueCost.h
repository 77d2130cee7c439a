// The price of operands that are transformed on load (kernel/ContractionPrologue.h), on top of a
// tensor-core kernel's.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/Device.h"

namespace weft {

/// Seconds in which a multiprocessor makes the slices of one operand for one tile of m x n, as deep
/// as k is rounded up to; 0 where both operands are read as they are. `share`: of the
/// multiprocessor's arithmetic that is free for it.
double transformSeconds(const Kernel &kernel, const GemmProblem &gemm, double m, double n,
                        double depth, double share, const Device &device);

/// Unmeasured, such a kernel costs so many times what its model says.
double unmeasuredPrologue(const GemmProblem &gemm);

}  // namespace weft
