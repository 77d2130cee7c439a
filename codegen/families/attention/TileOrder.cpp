// A stable sort by what tiles see, and a short search; see TileOrder.h.
#include "codegen/families/attention/TileOrder.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace weft {

TileOrder longestTilesFirst(const std::vector<int64_t> &seen, bool lastRowsFirst) {
  if (seen.empty()) return {};
  TileOrder order{.tiles = std::vector<int>(seen.size())};
  std::iota(order.tiles.begin(), order.tiles.end(), 0);
  if (lastRowsFirst) std::ranges::reverse(order.tiles);
  std::ranges::stable_sort(order.tiles, std::greater(),
                           [&](int tile) { return seen[size_t(tile)]; });
  const double mean =
      double(std::accumulate(seen.begin(), seen.end(), int64_t(0))) / double(seen.size());
  order.longTiles =
      int(std::ranges::count_if(seen, [&](int64_t own) { return double(own) > 2 * mean; }));
  return order;
}

int64_t headsTogether(int64_t heads, int64_t fitting) {
  const int64_t most = std::clamp<int64_t>(fitting, 1, heads);
  int64_t best = most;
  const auto last = [&](int64_t group) { return (heads - 1) % group + 1; };
  for (int64_t group = most; 2 * group >= most; --group)
    if (last(group) > last(best)) best = group;
  return best;
}

}  // namespace weft
