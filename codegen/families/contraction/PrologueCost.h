// The price of prologue fusion (kernel/ContractionPrologue.h), on top of a tensor-core kernel's.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "kernel/Device.h"

namespace weft {

/// Seconds in which a multiprocessor computes the k-tiles of one operand for one tile of m x n;
/// `depth` is k rounded up to whole k-tiles. 0 without a prologue. `share`: of the multiprocessor's
/// arithmetic that is free for it.
double transformSeconds(const Kernel &kernel, const GemmProblem &gemm, double m, double n,
                        double depth, double share, const Device &device);

/// What waiting for rewritten k-tiles, or scaling accumulators, makes of the time.
double prologueFactor(const GemmProblem &gemm);

}  // namespace weft
