// The modelled price of a fused attention by attention-sm80.
//
//   t = launch + start + max(memory, waves of blocks x (tiles of keys x (tensor + exponentials)))
//
// Tensor: both multiplications of a tile at the share of the peak that mma.sync reaches.
// Exponentials and score ops are not hidden by them where one block has a multiprocessor to itself,
// and in part where several share it. Tiles that masks exclude are skipped. Memory: every operand
// once. No constant is measured yet.
#pragma once

#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Bytes necessary and flop are left to the caller. Throws Error(unsupported) where the kernel is
/// no such attention.
Cost sm80AttentionCost(const Kernel &kernel, const Configuration &configuration,
                       const Sm80AttentionKnobs &knobs, const Device &device);

}  // namespace weft
