// A plan tensor's elements in memory, and in the logical row-major order in which callers hold
// them.
//
// Invariant: an element (i0, i1, ...) lies at offset + sum of i * stride elements from the start of
// the tensor's buffer.
#pragma once

#include "plan/Plan.h"

#include <cstddef>
#include <span>

namespace weft {

int64_t elementCount(const PlanTensor &tensor);
/// Bytes of one stored element.
int64_t elementBytes(const PlanTensor &tensor);
/// Bytes of the tensor in logical row-major order.
int64_t logicalBytes(const PlanTensor &tensor);
/// Bytes from the first element to the end of the last one; more than logicalBytes for a strided
/// view.
int64_t spanBytes(const PlanTensor &tensor);
/// Whether memory order and logical row-major order are the same.
bool isRowMajor(const PlanTensor &tensor);

/// Logical row-major elements to their places; `memory` starts at element zero. Bytes between them
/// stay.
void scatter(const PlanTensor &tensor, std::span<const std::byte> logical,
             std::span<std::byte> memory);
/// The reverse.
void gather(const PlanTensor &tensor, std::span<const std::byte> memory,
            std::span<std::byte> logical);

}  // namespace weft
