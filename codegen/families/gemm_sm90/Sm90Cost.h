// The modelled price of a contraction by gemm-sm90.
//
//   t = launch + start + max(memory, tensor) + share x min(memory, tensor) x (one k-tile) / k
//
// Tensor: tiles in waves over the multiprocessors; a partial last wave costs a whole one, edges are
// padded. Memory: every operand once; few CTAs do not reach the memory's bandwidth. CTAs are
// persistent: the k-tiles of the next tile arrive while a tile is stored. Cooperative consumers
// issue no WGMMA in an epilogue; of ping-pong ones the other's WGMMA hides a part of every epilogue
// but the last. An epilogue takes so long for every element: its arithmetic, operands of C's shape,
// draws of dropout, reductions. With cluster split-K each CTA computes its share of k and then
// receives the accumulators of the others; clusters of 4 and 8 leave multiprocessors idle.
// Single-consumer tiles are one CTA each and fill the 64 rows of an instruction whatever their
// side. Constants and their sources: AnalyticConstants.h.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

struct ContractionRegion;

/// Seconds of the MMAs and of the exposed part of the epilogues, which take a multiprocessor so
/// long for an element.
double sm90TensorSeconds(const GemmProblem &gemm, const Sm90GemmKnobs &knobs, double elementSeconds,
                         const Device &device);

/// Seconds of a multiprocessor that an element of C takes in the epilogue, without draws of
/// dropout.
double sm90ElementSeconds(const Kernel &kernel, const ContractionRegion &region);

/// Bytes and flop are left to the caller. Throws Error(unsupported) where the layouts are no such
/// GEMM.
Cost sm90Cost(const Kernel &kernel, const Configuration &configuration, const Sm90GemmKnobs &knobs,
              const Device &device);

}  // namespace weft
