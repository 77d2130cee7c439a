// The modelled price of a contraction by gemm-sm90.
//
//   t = launch + start + max(memory, tensor) + share x min(memory, tensor) x (one k-tile) / k
//
// Tensor: tiles in waves over the multiprocessors; a partial last wave costs a whole one, edges are
// padded. Memory: every operand once; few CTAs do not reach the memory's bandwidth. CTAs are
// persistent: the k-tiles of the next tile arrive while a tile is stored. Cooperative consumers
// issue no WGMMA while they store a tile; with ping-pong ones only half the store of the last tile
// is exposed. With cluster split-K each CTA computes its share of k and then waits for the
// accumulators of the others. Single-consumer tiles are one CTA each and fill the 64 rows of an
// instruction whatever their side. Constants and their sources: AnalyticConstants.h.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Seconds of the MMAs and of the exposed part of the stores.
double sm90TensorSeconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs, const Device &device);

/// Bytes and flop are left to the caller. Throws Error(unsupported) where the layouts are no such
/// GEMM.
Cost sm90Cost(const Kernel &kernel, const Configuration &configuration, const Sm90GemmKnobs &knobs,
              const Device &device);

}  // namespace weft
