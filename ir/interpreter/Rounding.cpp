// Element by element.
#include "ir/interpreter/Rounding.h"

namespace weft::reference {

void roundTo(DType type, TensorValue &tensor) {
  if (type == DType::f64) return;
  for (double &element : tensor.elements) element = roundTo(type, element);
}

}  // namespace weft::reference
