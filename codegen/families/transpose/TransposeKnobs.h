// The knobs of the transpose family, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Transpose family: one tensor from one layout to another through a shared-memory tile.
struct TransposeKnobs {
  int tile = 32;        ///< elements on each side of the tile
  int vectorWidth = 1;  ///< elements an access
  int threads = 256;
  static const Family &family();
  auto operator<=>(const TransposeKnobs &) const = default;
};

extern const Family transposeFamily;
inline const Family &TransposeKnobs::family() { return transposeFamily; }

}  // namespace weft
