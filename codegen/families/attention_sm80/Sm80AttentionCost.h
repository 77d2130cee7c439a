// The modelled price of a fused attention by attention-sm80.
//
//   t = launch + start + max(memory, waves of blocks x (tiles of keys x (tensor + exponentials)))
//
// Tensor: both multiplications of a tile at the share of the peak that mma.sync reaches.
// Exponentials and score ops are not hidden by them where one block has a multiprocessor to itself,
// and in part where several share it. Tiles that masks exclude are skipped. Memory: every operand
// once. No constant is measured yet. Queries that are turned lengthen the start of a block.
//
// Kernels that join rows (few queries, many keys) are priced by what a multiprocessor loads:
//
//   t = launch + start + max(loads, latency, tensor + exponentials) of the busiest multiprocessor
//       + combine
//
// Keys and values come from DRAM once, and from L2 once for every tile of rows that reads them:
// once for a group of heads that are packed, else once a head. The bandwidth of a multiprocessor
// grows with the bytes that its blocks have in flight; a last wave of few blocks has little more.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "passes/configure/CostModel.h"

#include <vector>

namespace weft {

/// Bytes necessary and flop are left to the caller. Throws Error(unsupported) where the kernel is
/// no such attention.
Cost sm80AttentionCost(const Kernel &kernel, const Configuration &configuration,
                       const Sm80AttentionKnobs &knobs, const Device &device);

/// Kernels of few queries and many keys, for which rows are packed and keys split: at most so many
/// rows share keys and values, and there are several times as many keys as queries.
bool isDecoding(const AttentionProblem &problem);
/// The tiles worth trying for them, all of which join rows, each with the number of splits of the
/// least price and with that of the least one of many more. Empty where the kernel is none of them.
std::vector<Sm80AttentionKnobs> sm80DecodingChoices(const Kernel &kernel,
                                                    const AttentionRegion &region,
                                                    const AttentionProblem &problem,
                                                    const Device &device);

}  // namespace weft
