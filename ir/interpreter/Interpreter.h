// The reference interpreter: slow, plain, every op. The oracle that passes, kernels and plans are
// checked against.
#pragma once

#include "ir/interpreter/Tensor.h"  // TensorValue, distance()

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Operation.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// Arithmetic of the evaluation. `roundToStorage` rounds every value to its element type after each
/// op, as unfused kernels would, and operands of contractions to tf32 where the op admits it.
enum class Precision { f32, f64 };
struct InterpreterOptions {
  Precision precision = Precision::f64;
  bool roundToStorage = false;
  /// Operands of contractions alone, to their element types: what products read where a kernel
  /// computes an operand itself.
  bool roundFactors = false;
  /// Beside roundToStorage: moves every value by up to a unit in its last place, and sums of a
  /// contraction or reduction by what fp32 may lose of their terms, at random by this seed. It
  /// shows what a graph makes of rounding that is in no pattern: exact cancellations are none then.
  std::optional<uint64_t> perturbation = std::nullopt;
  /// Beside roundToStorage: what is stored becomes infinite from the range's end times this on. It
  /// shows what would leave the range if other roundings made it a little larger.
  double rangeShare = 1;
  uint64_t seed = 1, step = 0;  ///< of dropout
};

/// Evaluates a weft.graph (or weft.kernel) on the given arguments. On failure a diagnostic was
/// emitted at the op.
mlir::FailureOr<std::vector<TensorValue>> interpret(mlir::Operation *graph,
                                                    const std::vector<TensorValue> &arguments,
                                                    const InterpreterOptions &options);

/// Seeded random arguments for a graph: normal for floats (parameters scaled by 1/sqrt(the most
/// terms that a contraction sums over them, stacked or not)), positive where a root or a divisor is
/// computed of them; lengths and indices within range.
std::vector<TensorValue> randomArguments(mlir::Operation *graph, uint64_t seed);

}  // namespace weft
