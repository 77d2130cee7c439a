// `attention-backward-sm80`: the backward pass of a fused attention
// (kernel/AttentionBackwardRegion.h) on the tensor cores of sm_80 and later as a kernel program.
//
//    own tile   k, v of 16 keys a warp            or q, d_output of 16 queries a warp
//    steps      q, d_output ──cp.async──> stages  or k, v ──cp.async──> stages
//               ──mma.sync──> scores, d_kept ──element-wise ops──> kept, d_scores ──mma.sync──>
//               sums
//
// All kernels of the family are one kernel template (device/sm80_attention_backward.cuh), one
// launch without atomics or scratch. An emitted kernel names the backward pass and the tile, says
// where heads lie, and defines the element-wise ops as functions
// (families/attention_backward/AttentionGradients.h). Over packed tokens the template is
// device/sm80_packed_attention_backward.cuh. The CPU emulates all down to their instructions.
//
// Invariant: configurations, price and emission agree on strides and shared memory, because only
// AttentionBackwardProblem and Sm80AttentionBackwardTile compute these; emitted text asserts what
// plan.json has.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"

namespace weft::codegen {

Program lowerSm80AttentionBackward(const Kernel &kernel, const Configuration &configuration,
                                   const Sm80AttentionBackwardKnobs &knobs);

}  // namespace weft::codegen
