// Activations in fewer instructions, for results of a contraction's epilogue that are stored in 16
// bits.
//
// Invariant: only this file decides which ops an epilogue computes in this form, and their error
// bound; the emitter and the reference both use it. The functions are those of math.cuh and
// slope.cuh with "ForHalf" or "ForBfloat16" behind their names.
#pragma once

#include "kernel/Kernel.h"

#include <optional>

namespace weft {

/// The expression of the op with its short function. None where the function has no short form; in
/// kernels without a contraction, which are bound by memory; where the result is no output of f16
/// or bf16, nor becomes one by dropout or a mask of tokens, or has other readers than reductions
/// stored in the same type; and where the second
/// operand of a derivative is not stored in that type.
std::optional<Expression> shortExpression(const Kernel &kernel, const BodyOp &op);

/// How far the function's value may be off where it, or its product with a gradient, is stored in
/// this type: 0.15 units in the last place of |value| + 2 |x| phi(x), the terms of a derivative at
/// x, which cancel around a zero (x = 0 for none). Not less than 1.2 2^-27 for f16, whose values
/// below 2^-14 have no more digits, and 2^-116 for bf16, where the exponential ends in fp32.
double shortError(DType type, double value, double x);

}  // namespace weft
