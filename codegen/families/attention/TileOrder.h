// The order in which persistent blocks take the tiles of a fused attention under block masks: those
// first that see most, as others would wait for them at the end; and of how many heads together.
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

/// How many of `heads` are taken together, of which `fitting` stay in L2: the number from half of
/// those on that leaves most heads to the last group, the largest such. The longest tiles of the
/// last group begin last, and run alone where the others of their group are few.
int64_t headsTogether(int64_t heads, int64_t fitting);

}  // namespace weft
