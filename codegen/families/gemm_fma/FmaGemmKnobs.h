// The knobs of plain contractions, and the family.
#pragma once

#include "kernel/Family.h"

namespace weft {

/// Contractions by tiled FMA: any element type, any target.
struct FmaGemmKnobs {
  int tileM = 64, tileN = 64, tileK = 16;  ///< elements of the block's tile
  int threadM = 4, threadN = 4;            ///< elements a thread accumulates
  int stages = 2;                          ///< k-tiles in shared memory
  int kGroups = 1;                         ///< groups of threads that share every k-tile
  static const Family &family();
  auto operator<=>(const FmaGemmKnobs &) const = default;
};

/// Threads of a block; 0 where threads do not cover the tile.
int64_t fmaThreads(const FmaGemmKnobs &knobs);
/// Dynamic shared memory of a block: k-tiles, and behind them, in the same place, what groups of
/// threads have summed.
int64_t fmaSharedBytes(const FmaGemmKnobs &knobs);
/// Why a kernel with these knobs is not emitted; empty if it is.
std::string fmaKnobsRejection(const FmaGemmKnobs &knobs);

extern const Family fmaGemmFamily;
inline const Family &FmaGemmKnobs::family() { return fmaGemmFamily; }

}  // namespace weft
