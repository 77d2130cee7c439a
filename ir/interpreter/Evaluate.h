// One op at a time: what the interpreter asks for between taking operands and storing results.
#pragma once

#include "ir/interpreter/Interpreter.h"

#include <span>

namespace weft::reference {

using Operands = std::span<const TensorValue *const>;

/// The results of one op that computes (graphs, kernels, terminators and checks are the
/// interpreter's own business). Throws Error(badInput) for values the op rejects (an index out of
/// range), Error(unsupported) for an op without a reference evaluation.
std::vector<TensorValue> evaluate(mlir::Operation *op, Operands operands,
                                  const InterpreterOptions &options);

}  // namespace weft::reference
