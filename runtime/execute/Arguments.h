// Integers that callers bring and kernels read rows and positions by: lengths of sequences, and
// indices of tables. Kernels read nothing outside a table or a sequence whatever they say. They are
// checked on the host, before a run where they are there, after it where they are on the GPU; of a
// caller who keeps them on the GPU, kernels report the first that is out of range
// (kernel/ArgumentStatus.h).
#pragma once

#include "kernel/ArgumentStatus.h"
#include "plan/Plan.h"

#include <cstddef>
#include <span>
#include <string_view>

namespace weft {
class Error;
}

namespace weft::runtime {

/// Whether checkInteger() has something to check of the tensor.
bool isChecked(const Plan &plan, int tensor);

/// Throws Error(badInput) that names the first element out of range and where it stands: a length
/// by its sequence, an index by its coordinates. `where`: what the elements, logical row-major,
/// were read from.
void checkInteger(const Plan &plan, int tensor, std::span<const std::byte> elements,
                  std::string_view where);

/// The same of what kernels report of the tensor, which they may have packed from an argument.
Error reportedError(const Plan &plan, int tensor, const ReportedElement &element,
                    std::string_view where);

}  // namespace weft::runtime
