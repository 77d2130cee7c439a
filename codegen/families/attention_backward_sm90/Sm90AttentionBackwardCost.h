// The modelled price of a fused attention backward by attention-backward-sm90.
//
//   t = launch + start + max(memory, waves of tiles x (blocks of queries x (five GEMMs at their
//       share of the peak) + load and store)) + rounding
//
// The share of the peak grows with the columns of a head, as element-wise ops and what goes through
// shared memory for every score grow less. Blocks that masks exclude are skipped. Memory: every
// operand once; the sums of the queries' gradient once more, to be rounded.
//
// Sums in any order: without what the tiles of a head in flight wait for their semaphores, a
// prediction.
//
// Gradients apart: tiles of keys with four GEMMs a block and tiles of queries with three, no
// semaphores, no sums. Single: three, two and three GEMMs of tiles of keys, values and queries, by
// the constants of gradients apart, and a tile's rows that nothing loads ahead; that form has not
// run on a GPU.
#pragma once

#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Bytes necessary and flop are left to the caller. Throws Error(unsupported) where the kernel is
/// no such attention.
Cost sm90AttentionBackwardCost(const Kernel &kernel, const Configuration &configuration,
                               const Sm90AttentionBackwardKnobs &knobs, const Device &device);

}  // namespace weft

namespace weft::margins {

/// Under layouts that were not measured, by a measurement of the same knobs under others: how far
/// the 48 measurements that ship lie from what they say of each other (passes/configure/Margins.h).
constexpr double attentionBackwardLayouts = 0.016;

}  // namespace weft::margins
