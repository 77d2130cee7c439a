// The knobs of the backward pass of fused attention by mma.sync, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Blocks of one tile of keys or of queries, 16 a warp; copies of threads into pipeline stages
/// (sm80_attention_backward.cuh).
struct Sm80AttentionBackwardKnobs {
  int tileRows = 64;     ///< keys or queries of a block: 32, 64 or 128
  int tileColumns = 32;  ///< queries or keys of a step: 16, 32 or 64
  int stages = 2;        ///< steps in shared memory
  static const Family &family();
  auto operator<=>(const Sm80AttentionBackwardKnobs &) const = default;
};

extern const Family sm80AttentionBackwardFamily;
inline const Family &Sm80AttentionBackwardKnobs::family() { return sm80AttentionBackwardFamily; }

}  // namespace weft
