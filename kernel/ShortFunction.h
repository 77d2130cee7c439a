// Activations in fewer instructions, for results of a contraction's epilogue that leave in 16 bits.
//
// Invariant: which ops an epilogue computes so, and how far off they may then be, stand here alone;
// the emitter and the reference ask. The functions are those of math.cuh and slope.cuh with
// "ForHalf" or "ForBfloat16" behind their names.
#pragma once

#include "kernel/Kernel.h"

#include <optional>

namespace weft {

/// The expression of the op with its short function. None where the function has none; in kernels
/// without a contraction, which wait for memory; where the result is no output of f16 or bf16, or
/// is read by more than sums that leave in the same type; and where a derivative's place (its
/// second operand) is not stored in that type.
std::optional<Expression> shortExpression(const Kernel &kernel, const BodyOp &op);

/// How far the function's value may be off where it, or its product with a gradient, is stored in
/// this type: 0.15 units in the last place of |value| + 2 |x| phi(x), the terms of a derivative at
/// x, which cancel around a zero (x = 0 for none). Not less than 1.2 2^-27 for f16, whose values
/// below 2^-14 have no more digits, and 2^-116 for bf16, where the exponential ends in fp32.
double shortError(DType type, double value, double x);

}  // namespace weft
