// What is before a contraction: applied as its operand is loaded, against our best loop kernel
// of it and then the GEMM alone, which is the faster one of ours and cuBLASLt's.
#pragma once

#include "runtime/cuda/CublasLt.h"

namespace weft::bench {

/// Prints a line for every such contraction of several layers, all contenders interleaved;
/// printsEveryTile: and one for each of our tiles. Times only: tests/gpu compares results.
void benchPrologues(DType dtype, int rounds, bool printsEveryTile, const runtime::CublasLt &library,
                    const runtime::cuda::Stream &stream);

}  // namespace weft::bench
