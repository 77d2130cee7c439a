// Activations in fewer instructions, for results that leave in 16 bits at once.
//
// Invariant: which ops a contraction's epilogue may compute so, and how far off they may then be, stand here alone; the emitter
// and the reference ask. The functions are those of math.cuh and slope.cuh with "ForHalf" or "ForBfloat16" behind their names.
#pragma once

#include "kernel/Kernel.h"

#include <optional>
#include <string>

namespace weft {

/// The spelling of the op with its short function; none where it has none, where its result is no output of f16 or bf16 or is read
/// by more than sums, or where a derivative's place (its second operand) is not stored in the same type.
std::optional<std::string> shortSpelling(const Kernel &kernel, const BodyOp &op);

/// How far the function's value may be off where that or its product is stored in this type: 0.15 units in the last place of the value
/// and, of a derivative at x, of its terms, which cancel around a zero; and what is too small for the exponential in fp32.
double shortError(DType type, double value, double x);

}  // namespace weft
