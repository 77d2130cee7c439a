// The knobs of plain contractions, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Contractions by tiled FMA: any element type, any target; the last resort.
struct FmaGemmKnobs {
  int tileM = 64, tileN = 64, tileK = 16;  ///< elements of the block's tile
  int threadM = 4, threadN = 4;            ///< elements a thread accumulates
  static const Family &family();
  auto operator<=>(const FmaGemmKnobs &) const = default;
};

extern const Family fmaGemmFamily;
inline const Family &FmaGemmKnobs::family() { return fmaGemmFamily; }

}  // namespace weft
