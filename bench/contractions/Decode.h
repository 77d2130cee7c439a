// What follows the products of decoding, which are weights streamed past a few rows: fused into
// single-consumer tiles and into wide ones, against our plain GEMM and a loop kernel, against
// cuBLASLt's and that, and against its own epilogue where it has one.
#pragma once

#include "runtime/cuda/CublasLt.h"

namespace weft::bench {

/// Prints a line for every such problem whose name and shape ("product_bias_gelu 8x4096x1024")
/// contain one of `names`, or for all, with the time that its bytes take at the bandwidth of the
/// best copy; all contenders interleaved, on more sets of operands than the L2 holds, weights along
/// k. startsEarly: kernels of ours that may, while the one before them ends. printsEveryTile: and a
/// line for each of our tiles. Times only: tests/gpu compares results (--filter
/// '^single-consumer-fused').
void benchDecode(DType dtype, int rounds, bool startsEarly, bool printsEveryTile,
                 const std::vector<std::string> &names, const runtime::CublasLt &library,
                 const runtime::cuda::Stream &stream);

}  // namespace weft::bench
