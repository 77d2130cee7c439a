// What is said of fused attentions over packed tokens that a family of the target takes, though not
// the one that it is preferred to.
#pragma once

#include "tools/driver/Compilation.h"

namespace weft::driver {

/// A record (F034) and a note for every such candidate of the variant, whose graph this is, forward
/// and backward: the kernel runs by the other family, or between kernels that unpack and pack its
/// tokens, whichever is faster.
void recordFamiliesLeftOut(ProposedVariant &variant, mlir::Operation *graph, const Device &device);

}  // namespace weft::driver
