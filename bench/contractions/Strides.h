// Products with several strides along a group of axes, as they stand, against what does without:
// transposes of the tensors that have them, and the GEMM of one stride a group, ours or
// cuBLASLt's.
#pragma once

#include "runtime/cuda/CublasLt.h"

namespace weft::bench {

/// Prints a line for every gemm, all contenders interleaved; printsEveryTile: and one for each
/// of our tiles. Times only: tests/gpu compares results (--filter '^strides').
void benchStrides(DType dtype, int rounds, bool printsEveryTile, const runtime::CublasLt &library,
                  const runtime::cuda::Stream &stream);

}  // namespace weft::bench
