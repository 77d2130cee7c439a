// The tensors of a plan on small extents: the same orders, buffers and views, other strides,
// offsets and sizes. No MLIR.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <vector>

namespace weft::driver {

/// Extents of every tensor, logical order.
using TensorExtents = std::vector<std::vector<int64_t>>;

/// Gives the plan's tensors other extents. Dense tensors stay dense in their order, padded
/// rows padded where they can be. A view stays the same part of the dense or padded tensor in whose
/// buffer it lies, its offset with it. Buffers keep
/// their places in the workspace; those that lay in a result that is too small for them now get
/// one. Throws Error(unsupported) naming a view that is no whole part any more.
void scaleTensors(Plan &plan, const TensorExtents &extents);

}  // namespace weft::driver
