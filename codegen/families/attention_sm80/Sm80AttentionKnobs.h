// The knobs of fused attention by mma.sync, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Blocks of one tile of queries, 16 a warp; copies of threads into a ring of stages
/// (sm80_attention.cuh).
struct Sm80AttentionKnobs {
  int tileQueries = 64;  ///< queries of a block: 64 or 128
  int tileKeys = 64;     ///< keys of a tile: 32 or 64
  int stages = 2;        ///< tiles of keys and values in shared memory
  static const Family &family();
  auto operator<=>(const Sm80AttentionKnobs &) const = default;
};

extern const Family sm80AttentionFamily;
inline const Family &Sm80AttentionKnobs::family() { return sm80AttentionFamily; }

}  // namespace weft
