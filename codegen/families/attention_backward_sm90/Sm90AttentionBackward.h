// `attention-backward-sm90`: a fused attention backward (kernel/AttentionBackwardRegion.h) on the
// tensor cores of sm_90a as a kernel program.
//
//    k, v ──TMA──> shared memory; q, d_output ──TMA──> two stages        (producer warp)
//    scores^T, dKept^T ──element-wise ops──> kept, dScores               (consumer warpgroups,
//    dV, dK in registers over all queries                                 64 keys each)
//    dQ of a block ──added in the order of key tiles──> workspace ──> dQ (sum warp)
//
// Gradients apart: tiles of keys and tiles of queries by one loop, no workspace. Of more than 128
// columns tiles of keys, of values and of queries, a gradient each.
//
// Kernels of the family are one of three kernel templates (device/sm90_attention_backward.cuh,
// device/sm90_split_backward.cuh, device/sm90_single_backward.cuh); the first one has further maps
// over packed tokens (device/sm90_packed_attention_backward.cuh). An emitted kernel names the
// attention and the tile, passes tensor maps, and defines the element-wise ops as functions
// (families/attention_backward).
//
// Invariant: configurations, price and emission agree on strides, maps, shared memory and
// workspace, because only AttentionBackwardProblem and Sm90AttentionBackwardTile compute these;
// emitted text asserts what plan.json has.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"

namespace weft::codegen {

Program lowerSm90AttentionBackward(const Kernel &kernel, const Configuration &configuration,
                                   const Sm90AttentionBackwardKnobs &knobs);

}  // namespace weft::codegen
