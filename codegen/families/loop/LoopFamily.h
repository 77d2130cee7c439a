// The configurations of loop kernels, and their price.
#pragma once

#include "codegen/families/loop/LoopKnobs.h"

namespace weft {

SpaceOrRejection loopSpace(const Kernel &kernel, const Device &device);
/// Family::price: LoopPricer's (LoopCost.h), operand by operand.
Cost loopCost(const Kernel &kernel, const Configuration &configuration, const Device &device);

/// Accumulators or a maximum of single elements, whose operands are read once: reduce,
/// layer_norm_dw, rms_norm_dw.
bool isPlainReduction(const BodyOp &op);
/// How many of them a kernel has; an op with two results has two.
int64_t accumulatorsOf(const Kernel &kernel);

}  // namespace weft
