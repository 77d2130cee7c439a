// The knobs of tensor-core contractions from sm_80 on, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Tensor-core contractions from sm_80 on: one block a tile, copies into pipeline stages,
/// mma.sync (sm80_gemm.cuh).
struct Sm80GemmKnobs {
  int tileM = 128, tileN = 128;  ///< elements of C a block: 32, 64, 128, 256
  int tileK = 32;                ///< elements of k of a k-tile: 32 or 64
  int stages = 4;                ///< k-tiles of A and B in shared memory
  int warpsM = 2, warpsN = 2;    ///< warps of a block along both sides of its tile
  int groupM = 8;                ///< tiles along m that are taken together before the next along n
  static const Family &family();
  auto operator<=>(const Sm80GemmKnobs &) const = default;
};

extern const Family sm80GemmFamily;
inline const Family &Sm80GemmKnobs::family() { return sm80GemmFamily; }

}  // namespace weft
