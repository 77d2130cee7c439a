// The modelled price of a contraction by gemm-sm80.
//
//   t = launch + start + max(memory, tensor) + share x min(memory, tensor) x (one k-tile) / k
//
// as for gemm-sm90 (Sm90Cost.h), with the share of the peak that mma.sync reaches. Until the family
// has been measured it costs at least as much as the library's first candidate, where there is a
// library: without measurements a plan uses it only where the alternative is plain FMA, and for
// padded rows, which the library does not take by whole vectors: their price is at least the
// library's of rows as long as whole vectors.
#pragma once

#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Seconds of the MMAs: tiles in waves over the multiprocessors, edges padded.
double sm80TensorSeconds(const GemmProblem &gemm, const Sm80GemmKnobs &knobs, DType dtype,
                         const Device &device);

/// Bytes and flop are left to the caller. Throws Error(unsupported) where the layouts are no such
/// GEMM.
Cost sm80Cost(const Kernel &kernel, const Configuration &configuration, const Sm80GemmKnobs &knobs,
              const Device &device);

}  // namespace weft
