// The modelled price of a backward attention by attention-backward-sm80.
//
//   t = launch + start + max(memory, blocks' seconds / multiprocessors + half of a longest block)
//
// A block takes tensor and element-wise time for every step that masks leave: four products a step
// with keys, three with queries, at the share of the peak that mma.sync reaches. Element-wise time
// is not hidden by products where one block has a multiprocessor to itself, and in part where
// several share it. Memory: every operand once. No constant is measured yet.
#pragma once

#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"
#include "passes/configure/CostModel.h"

namespace weft {

/// Bytes necessary and flop are left to the caller. Throws Error(unsupported) where the kernel is
/// no such backward pass.
Cost sm80AttentionBackwardCost(const Kernel &kernel, const Configuration &configuration,
                               const Sm80AttentionBackwardKnobs &knobs, const Device &device);

}  // namespace weft
