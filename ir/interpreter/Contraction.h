// Einsum of two operands: every letter of the result stands in an operand (batch, free of a, free
// of b), every other letter stands in both operands and is summed over.
#pragma once

#include "ir/interpreter/Tensor.h"

#include <string_view>

namespace weft::reference {

/// result = scale * sum over reduced letters of a * b; `termA`, `termB`, `termResult` are the
/// letters of "termA,termB->termResult". Products and sums are in Real (float or double), k
/// ascending. Accepts what the verifier of weft.contract accepts.
template <typename Real>
TensorValue contract(std::string_view termA, std::string_view termB, std::string_view termResult,
                     const TensorValue &a, const TensorValue &b, double scale);

}  // namespace weft::reference
