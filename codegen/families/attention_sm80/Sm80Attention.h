// `attention-sm80`: a fused attention (kernel/AttentionRegion.h) on the tensor cores of sm_80 and
// later as a kernel program.
//
//    q ──cp.async──> shared ──ldmatrix──┐
//    k ──cp.async──> stages ────────────┴─mma.sync─> scores ──score ops, online softmax──┐
//    v ──cp.async──> stages ────────────────────────────────────────────────mma.sync─────┴─> output
//                                         (registers of a warp, 16 queries)
//
// All kernels of the family are one kernel template (device/sm80_attention.cuh). An emitted kernel
// names the attention and the tile, says where heads lie, and defines the score ops as functions
// (families/attention/AttentionScore.h). The CPU emulates it down to its instructions
// (tests/emulate/host/weft/sm80.cuh).
//
// On sm_90a `attention-sm90` is faster where tensor cores are the bound; this family takes layouts
// there that TMA does not, and few queries of many keys (`isDecoding`), where memory is the bound
// and price decides between the two: heads that share keys and values are packed into the rows of a
// tile, and several blocks share its keys (sm80_attention.cuh). Splits leave their rows in device
// memory of the module; the last block to arrive joins them in one order, so results have the same
// bits in every launch.
//
// Packed tokens: the rows of a head are those of its sequence (device/packed_sequences.cuh).
//
// Invariant: configurations, price and emission agree on strides and shared memory, because only
// AttentionProblem and Sm80AttentionTile compute these; emitted text asserts what plan.json has.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"

namespace weft::codegen {

Program lowerSm80Attention(const Kernel &kernel, const Configuration &configuration,
                           const Sm80AttentionKnobs &knobs);

}  // namespace weft::codegen
