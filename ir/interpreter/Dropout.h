// Dropout of a whole tensor by the bits that SPEC.md fixes (kernel/reference/DropoutBits.h).
#pragma once

#include "ir/interpreter/Tensor.h"
#include "kernel/reference/DropoutBits.h"

namespace weft::reference {

/// What is dropped, by which bits.
struct Dropping {
  double p = 0;
  DropoutSource source;
};

/// Kept elements times 1 / (1 - p), the others zero. The factor is rounded to fp32 in either
/// precision, as SPEC.md says.
template <typename Real>
TensorValue dropout(const TensorValue &x, double p, const DropoutSource &source);

}  // namespace weft::reference
