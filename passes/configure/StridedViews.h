// Operands with gaps: parts of a tensor, joined or sliced, that are no blocks of it, because the
// axis is not the slowest. Their runs are whole lines of memory, so a kernel moves what it moves
// without gaps, if it takes them at all.
#pragma once

#include "passes/configure/CostModel.h"

#include <string>

namespace weft {

/// Whether the strides are given and are not those of its order.
bool hasStridedView(const Layout &layout, const std::vector<int64_t> &extents);
bool hasStridedView(const Kernel &kernel, const Configuration &configuration);
/// Bytes from an operand's first element to behind its last one, gaps included.
int64_t spanBytes(const Kernel &kernel, int value, const Layout &layout);

/// Why some configuration that the kernel has with operand `operand` (inputs, then outputs) dense
/// in this order has no twin with these strides: a GEMM whose axes must merge across a gap, an
/// operand or result of an epilogue, a movement that may be a view itself. Empty if all have one.
std::string stridedViewRejection(const Kernel &kernel, size_t operand, const Layout &layout);

/// The same configuration without gaps.
Configuration asContiguous(const Kernel &kernel, Configuration configuration);

/// What the model says of a kernel whose operands may have gaps: its row where it has one, else the
/// price without gaps.
Cost costWithStridedViews(const CostModel &model, const Kernel &kernel,
                          const Configuration &configuration);

}  // namespace weft
