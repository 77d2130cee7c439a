// Names for values that a graph was written without.
#pragma once

#include "mlir/IR/Operation.h"

namespace weft {

/// Gives every numbered value of a graph the name that plans would print for it: that of its op, or
/// "argN", with a number where it is taken. Rewritten graphs then name what they share alike, as
/// choices by name (pins, layouts compared) need. Written names stay.
void nameValues(mlir::Operation *graph);

}  // namespace weft
