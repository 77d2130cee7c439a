// The knobs of fused attention backward on sm_90a, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Persistent blocks of one warpgroup of helpers and two of consumers, 64 keys each
/// (sm90_attention_backward.cuh).
struct Sm90AttentionBackwardKnobs {
  int tileQueries = 128;  ///< queries of a block: 64, 128
  int tileKeys = 128;     ///< keys of a tile: 64 a consumer warpgroup
  int headGroup = 1;      ///< heads of keys whose tiles are taken together, first keys first
  int blocks = 132;       ///< of the persistent grid, at most
  static const Family &family();
  auto operator<=>(const Sm90AttentionBackwardKnobs &) const = default;
};

extern const Family sm90AttentionBackwardFamily;
inline const Family &Sm90AttentionBackwardKnobs::family() { return sm90AttentionBackwardFamily; }

}  // namespace weft
