// Strided views: operands or results that lie within a larger tensor (the operands of a
// concatenation, the results of a slice) along an axis that is not its slowest. Their contiguous
// runs are whole lines of memory, so a kernel that accepts such a view moves as many bytes as with
// a contiguous operand.
#pragma once

#include "passes/configure/CostModel.h"

#include <string>

namespace weft {

/// Whether the strides are given and are not those of its order.
bool hasStridedView(const Layout &layout, const std::vector<int64_t> &extents);
bool hasStridedView(const Kernel &kernel, const Configuration &configuration);
/// Bytes from an operand's first element to the end of its last one, with what lies between.
int64_t spanBytes(const Kernel &kernel, ValueId value, const Layout &layout);

/// Whether a movement of this kind leaves its elements where they are in some layout. Others (pack,
/// unpack, pad, ..) always move them.
bool mayBeView(OpKind kind);

/// Why the kernel does not accept these strides for operand `operand` (inputs, then outputs) in
/// some configuration that it has with that operand contiguous in the same order: a GEMM whose
/// merged axes are not adjacent in memory, an operand or result of an epilogue, a movement that may
/// be a view itself. Empty if it accepts them in all.
std::string stridedViewRejection(const Kernel &kernel, size_t operand, const Layout &layout);

/// The same configuration with all operands contiguous.
Configuration asContiguous(const Kernel &kernel, Configuration configuration);

/// The cost of a kernel whose operands may be strided views: the measurement of these strides if
/// there is one, else the cost of the contiguous configuration.
Cost costWithStridedViews(const CostModel &model, const Kernel &kernel,
                          const Configuration &configuration);

}  // namespace weft
