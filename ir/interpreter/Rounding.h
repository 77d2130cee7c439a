// Rounding of a value to what a stored element type can hold: to nearest, ties to even, with subnormals and overflow to
// infinity, as the conversion instructions of the GPUs do.
#pragma once

#include "ir/interpreter/Tensor.h"
#include "kernel/DType.h"

namespace weft::reference {

/// i1 becomes 0 or 1 (any non-zero value, also NaN, is 1); i32 is truncated towards zero; f64 is unchanged.
double roundTo(DType type, double value);
void roundTo(DType type, TensorValue &tensor);

}  // namespace weft::reference
