// Rotary position embedding ("RoFormer", section 3.2.2).
#pragma once

#include "ir/interpreter/SequenceStarts.h"
#include "kernel/RotaryStyle.h"

namespace weft::reference {

struct RotaryForm {
  int64_t position = 0, dim = 1;  ///< dimensions
  int64_t turned = 2;             ///< elements of `dim` that are pairs, even; the others stay
  double base = 10000;
  RotaryStyle style = RotaryStyle::halved;
  bool isReverse = false;
  double factor = 1;     ///< that frequencies are divided by
  int64_t original = 0;  ///< positions; 0: all frequencies are divided
  double low = 0,        ///< a pair with fewer turns in so many positions is slowed by the factor
      high = 0;          ///< one with more is not, those between are mixed
  int64_t among = -1;    ///< a dimension of which elements in [begin, end) alone are rotated, or -1
  int64_t begin = 0, end = 0;
};

/// Rotates pair i of the `dim` axis by position * frequency, back by it if reverse; frequencies are
/// base^(-2 i / turned), scaled. Positions count from the starts.
template <typename Real>
TensorValue rotary(const TensorValue &x, const RotaryForm &form, const SequenceStarts &starts = {});

}  // namespace weft::reference
