// The knobs of fused attention by mma.sync, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Blocks of one tile of rows, 16 a warp; copies of threads into pipeline stages
/// (sm80_attention.cuh).
struct Sm80AttentionKnobs {
  int tileQueries = 64;  ///< rows of a block: 16, 32, 64 or 128
  int tileKeys = 64;     ///< keys of a tile: 32, 64 or 128; of f32 also 16
  int stages = 2;        ///< tiles of keys and values in shared memory
  int packed = 0;        ///< 1: rows are the queries of all heads that share keys and values
  int splits = 1;        ///< blocks that share the keys of a tile of rows
  static const Family &family();
  auto operator<=>(const Sm80AttentionKnobs &) const = default;
};

extern const Family sm80AttentionFamily;
inline const Family &Sm80AttentionKnobs::family() { return sm80AttentionFamily; }

}  // namespace weft
