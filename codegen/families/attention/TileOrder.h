// The order in which persistent blocks take the tiles of a fused attention under block masks: those
// first that see most, as others would wait for them at the end.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

struct TileOrder {
  std::vector<int> tiles = {};  ///< empty: no table decides
  /// The first ones, which see more than twice the mean: of all heads they are taken before others.
  int longTiles = 0;
};

/// seen: what each tile sees, as seenByTiles() counts it; of equal ones the last or the first rows
/// come first.
TileOrder longestTilesFirst(const std::vector<int64_t> &seen, bool lastRowsFirst);

}  // namespace weft
