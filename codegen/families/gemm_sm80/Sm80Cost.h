// The price of a contraction on tensor cores by the skeleton kernel from sm_80 on, modelled.
//
//   t = launch + start + max(memory, tensor) + share x min(memory, tensor) x (one k-tile) / k
//
// as that of the skeleton of sm_90a (Sm90Cost.h), with the share of the peak that
// mma.sync reach. Until the family has been measured it is no cheaper than the library's first
// candidate, where there is a library: a plan takes it by default where it is the alternative to
// plain FMA, and else by rows of a profile.
#pragma once

#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Seconds of the products: tiles in waves over the multiprocessors, edges padded.
double sm80TensorSeconds(const GemmProblem &gemm, const Sm80GemmKnobs &knobs, DType dtype,
                         const Device &device);

/// Bytes and flop are left to the caller. Throws Error(unsupported) where the layouts are no such
/// GEMM.
Cost sm80Cost(const Kernel &kernel, const Configuration &configuration, const Sm80GemmKnobs &knobs,
              const Device &device);

}  // namespace weft
