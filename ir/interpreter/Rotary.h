// Rotary position embedding ("RoFormer", section 3.2.2).
#pragma once

#include "ir/interpreter/Tensor.h"

namespace weft::reference {

/// How the coordinates of a pair lie: halved (i, i + extent / 2), or interleaved (2 i, 2 i + 1).
enum class RotaryStyle : uint8_t { halved, interleaved };

/// Rotates pair i of the `dim` axis by position * base^(-2 i / extent), back by it if reverse. The
/// extent of `dim` is even.
template <typename Real>
TensorValue rotary(const TensorValue &x, int64_t position, int64_t dim, double base,
                   RotaryStyle style, bool isReverse);

}  // namespace weft::reference
