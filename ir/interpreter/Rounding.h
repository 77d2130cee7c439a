// Rounding of whole tensors to their stored element type.
#pragma once

#include "ir/interpreter/Tensor.h"
#include "kernel/reference/Rounding.h"

namespace weft::reference {

void roundTo(DType type, TensorValue &tensor);

}  // namespace weft::reference
