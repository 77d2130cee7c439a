// `attention-sm90`: a fused attention (kernel/AttentionRegion.h) on the tensor cores of sm_90a as a
// kernel program.
//
//    q ──TMA──> shared ──┐
//    k ──TMA──> stages ──┴─WGMMA──> scores ──score ops, online softmax──> exponentials ─┐
//    v ──TMA──> stages ─────────────────────────────────────────────────────────WGMMA──┴─> output
//               (producer warp)      (registers of a consumer warpgroup, 64 query rows)      │
//                                                                                  TMA store ─> o
//
// All kernels of the family are one kernel template (device/sm90_attention.cuh). An emitted kernel
// names the attention and the tile, passes tensor maps, and defines the score ops as functions of
// (score, head, query, key) (families/attention/AttentionScore.h): where masks leave a block of
// keys empty it is skipped, where they leave it whole they are not computed.
//
// Where queries are few and heads of a group share keys and values, the rows of a tile may be the
// queries of all of these heads (`packed`, device/sm90_packed_heads.cuh), as price decides.
//
// Where tiles are too few for the multiprocessors and keys many, several blocks share the keys of a
// tile (`splits`, device/sm90_split_keys.cuh), and the last one to arrive stores the output.
//
// Invariant: configurations, price and emission agree on strides, maps and shared memory, because
// only AttentionProblem and Sm90AttentionTile compute these; emitted text asserts what plan.json
// has.
#pragma once

#include "codegen/Program.h"
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"

namespace weft::codegen {

Program lowerSm90Attention(const Kernel &kernel, const Configuration &configuration,
                           const Sm90AttentionKnobs &knobs);

}  // namespace weft::codegen
