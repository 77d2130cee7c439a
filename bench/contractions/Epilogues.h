// What follows a contraction: fused into it, against the same kernel's plain GEMM and against
// the best of others: cuBLASLt's GEMM and then our best loop kernel of what is left, or its own
// epilogue where it has one (GELU is an approximation there). A kernel with sums also against
// itself without them and a loop kernel of them behind it.
#pragma once

#include "runtime/cuda/CublasLt.h"

namespace weft::bench {

/// Prints a line for every fused contraction of several layers whose name and shape
/// ("product_bias_gelu 4096x1024x1024") contain one of `names`, or for all; all contenders
/// interleaved; printsEveryTile: and one for each of our tiles. Times only: tests/gpu compares
/// results. ofWarps: ours are of gemm-sm80, and those without sums, which it does not
/// take.
void benchEpilogues(DType dtype, int rounds, bool printsEveryTile,
                    const std::vector<std::string> &names, bool ofWarps,
                    const runtime::CublasLt &library, const runtime::cuda::Stream &stream);

}  // namespace weft::bench
