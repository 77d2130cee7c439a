// The price of a contraction on the tensor cores of sm_90a by the skeleton kernel, modelled.
//
//   t = launch + start + max(memory, tensor) + share x min(memory, tensor) x (one k-tile) / k
//
// Blocks of a cluster that share k of a tile multiply a part of it each and then wait for the
// others' sums. Few blocks do not reach the memory's bandwidth. Tensor: tiles in waves over the
// multiprocessors, a last wave that is not full costs a whole one, edges are padded. Cooperative
// consumers multiply nothing while they store a tile; ping-pong ones show half of that of the last
// tile only. Blocks are persistent: while a tile is stored, k-tiles of the next arrive. Memory:
// every operand once. Single-consumer tiles are a block each and fill 64 rows of an instruction
// whatever their side. Constants and their sources: AnalyticConstants.h.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Seconds of the products and of what stores do not hide.
double sm90TensorSeconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs, const Device &device);

/// Bytes and flop are left to the caller. Throws Error(unsupported) where the layouts are no such
/// GEMM.
Cost sm90Cost(const Kernel &kernel, const Configuration &configuration, const Sm90GemmKnobs &knobs,
              const Device &device);

}  // namespace weft
