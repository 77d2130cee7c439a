// The configurations of loop kernels, and their price.
#pragma once

#include "codegen/families/loop/LoopKnobs.h"

namespace weft {

Expected<ConfigurationSpace, Reason> loopSpace(const Kernel &kernel, const Device &device);
/// Family::price: LoopPricer's (LoopCost.h), operand by operand.
Cost loopCost(const Kernel &kernel, const Configuration &configuration, const Device &device);

/// Elements of one row along a reduced axis: a local softmax divides its axis into sub-vectors.
int64_t rowExtent(const Kernel &kernel, AxisId axis);

/// Whether the op is a sum or a maximum of single elements that reads its operands once: reduce,
/// layer_norm_dw, rms_norm_dw.
bool isPlainReduction(const BodyOp &op);
/// The number of accumulators of a kernel's plain reductions, one for each result.
int64_t accumulatorsOf(const Kernel &kernel);

}  // namespace weft
