// Which values of a kernel must be positive for its results to be numbers: divisors, radicands, and
// what these are computed of. Random inputs follow it.
#pragma once

#include "kernel/Kernel.h"

#include <string_view>
#include <vector>

namespace weft {

/// Whether results of the op are positive where the operand is, and all others of which this holds.
bool preservesPositive(OpKind op, size_t operand);
/// Whether the op is undefined unless the operand is positive.
bool requiresPositive(OpKind op, size_t operand);

/// Per value of the kernel, whether its elements must be positive. `required`: values of which
/// readers outside of the kernel require it; empty: none. A requirement passes through ops whose
/// result is positive when their operands are (sums, products, roots, quotients, averages, casts,
/// movement); squares, exponentials and sigmoids meet it by themselves, and of other ops (a
/// difference, say) nothing can be required.
std::vector<bool> positiveValues(const Kernel &kernel, std::vector<bool> required = {});

}  // namespace weft
