// Dropout bits exactly as SPEC.md ("Dropout bits") fixes them: a function of (seed, stream, step, logical coordinates).
#pragma once

#include "ir/interpreter/Tensor.h"

#include <array>

namespace weft::reference {

/// Philox4x32 with 7 rounds ("Parallel Random Numbers: As Easy as 1, 2, 3", section 3.3).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Seed and step are read from the device, the stream belongs to the op.
struct DropoutSource {
  uint64_t seed = 1, step = 0;
  uint32_t stream = 0;
};

/// The 16-bit draw of element (outer, row, column) of the [outer][rows][columns] view.
uint32_t dropoutDraw(const DropoutSource &source, int64_t outer, int64_t row, int64_t column);

/// Kept elements times 1 / (1 - p), the others zero. The factor is rounded to fp32 in either precision, as SPEC.md says.
template <typename Real>
TensorValue dropout(const TensorValue &x, double p, const DropoutSource &source);

}  // namespace weft::reference
