// Movement of parameters that happens once, when they are loaded: whoever loads a parameter writes
// its elements where the first kernel reads them, so joining, merging or transposing parameters
// costs no kernel.
//
// Invariant: a movement op is packed at load exactly if, whatever layout its result takes, each
// operand is a strided view of the result that covers it. A slice is not (the parameter is
// larger than the result), nor is a split of an axis (the new axes need not stay adjacent); those
// are kernels or views like any other.
#pragma once

#include "kernel/Configuration.h"

#include <vector>

namespace weft {

/// Whether a kernel of parameters alone is packed at load.
bool isPackedAtLoad(const Kernel &kernel);

/// For such a kernel: where each of Kernel::inputs lies when the result lies in `result` (strides
/// always given).
std::vector<Layout> packedOperands(const Kernel &kernel, const Layout &result);

}  // namespace weft
