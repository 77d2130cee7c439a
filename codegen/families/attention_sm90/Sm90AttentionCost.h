// The modelled price of a fused attention by attention-sm90.
//
//   t = launch + start + max(memory, waves of tiles x (blocks of keys x (tensor + exponentials) +
//       store))
//
// Tensor: both GEMMs of a block at the peak. Exponentials overlap in part: what they add to it is
// fitted to runs on an H200, less for wider heads and with three consumers. Blocks of keys that
// masks exclude are skipped. Packed heads make fewer tiles, of the same time. Memory: every operand
// once. Where splits share the keys of a tile, each sees its part of the blocks, all tiles load
// theirs from L2, and the last split to arrive reads the sums of all. Constants:
// Sm90AttentionCost.cpp.
#pragma once

#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Bytes necessary and flop are left to the caller. Throws Error(unsupported) where the kernel is
/// no such attention.
Cost sm90AttentionCost(const Kernel &kernel, const Configuration &configuration,
                       const Sm90AttentionKnobs &knobs, const Device &device);

}  // namespace weft

namespace weft::margins {

/// Under layouts that were not measured, by a measurement of the same knobs under others: how far
/// the 368 measurements that ship lie from what they say of each other
/// (passes/configure/Margins.h).
constexpr double attentionLayouts = 0.004;

}  // namespace weft::margins
