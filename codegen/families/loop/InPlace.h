// Which operand a loop kernel may write its result over. MLIR-free.
//
// A loop kernel reads every element of an input of its result's shape and layout in the very thread
// that later writes that element, and rows are read by others only before the barrier that ends a
// reduction. So the result may take the place of the input, and a plan needs one buffer less: the
// probabilities of an unfused softmax lie where the scores were.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Family::overwritableInputs. Empty unless every op works on its own coordinates or reduces whole
/// rows, output 0 is the only result of its shape, and it is stored in the last pass that reads a
/// row. An input qualifies if it has the output's dtype, axes and layout, and stands among the
/// inputs once.
std::vector<size_t> loopOverwritableInputs(const Kernel &kernel,
                                           const Configuration &configuration);

}  // namespace weft
