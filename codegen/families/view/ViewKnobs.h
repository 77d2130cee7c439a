// The view family, which has no knobs.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Zero-cost family: slices and concatenations that are views of one buffer, and parameters packed
/// at load.
struct ViewKnobs {
  static const Family &family();
  auto operator<=>(const ViewKnobs &) const = default;
};

extern const Family viewFamily;
inline const Family &ViewKnobs::family() { return viewFamily; }

}  // namespace weft
