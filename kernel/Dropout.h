// What dropout drops and what it makes of the rest (ir/SPEC.md, "Dropout bits").
#pragma once
#ifndef WEFT_KERNEL_DROPOUT_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_DROPOUT_H

#include <cstdint>

namespace weft {

/// Which elements are dropped: a share p of them, drawn from a stream.
struct Dropout {
  double p = 0;
  int64_t stream = 0;
  bool operator==(const Dropout &) const = default;
};

/// 1 / (1 - p), in fp32.
inline float dropoutScale(double p) { return 1.0f / (1.0f - float(p)); }

}  // namespace weft

#endif  // WEFT_KERNEL_DROPOUT_H
