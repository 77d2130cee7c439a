// The knobs of fused attention on sm_90a, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Persistent blocks of one producer warp and one to three consumer warpgroups, 64 query rows each
/// or the same 64 together (sm90_attention.cuh).
struct Sm90AttentionKnobs {
  int tileQueries = 128;  ///< query rows of a tile: 64, 128, 192
  int tileKeys = 128;     ///< keys of a block: a multiple of 16
  int stages = 2;         ///< blocks of keys and of values in shared memory, each
  int queryStages = 1;    ///< tiles of queries in shared memory
  int ordered = 1;        ///< 1: consumers issue their GEMMs one after another
  int headGroup = 0;      ///< heads whose tiles are taken together, longest first; 0: head by head
  int residents = 0;      ///< blocks that share a multiprocessor: 3 where one consumer needs few
                      ///< registers; 0: two of one consumer where shared memory allows, else one
  int keyConsumers = 0;  ///< consumers that share 64 query rows and take blocks of keys in turn: 2
                         ///< or 3; 0: none do
  int packed = 0;        ///< 1: rows are the queries of all heads that share keys and values
  int splits = 1;        ///< blocks that share the keys of a tile (sm90_split_keys.cuh)
  int blocks = 132;      ///< of the persistent grid, at most
  static const Family &family();
  auto operator<=>(const Sm90AttentionKnobs &) const = default;
};

extern const Family sm90AttentionFamily;
inline const Family &Sm90AttentionKnobs::family() { return sm90AttentionFamily; }

}  // namespace weft
