// Rows that splits leave for the last one (AttentionPartials, sm80_attention_join.cuh), in the
// workspace of a launch: the plan places and bounds it with all other buffers. Counters of arrivals
// stay in the module, where they are zero at load and again after every launch.
#pragma once

#include "weft/sm80_attention.cuh"

namespace weft::sm80 {

template <AttentionShape shape, AttentionTile tile>
struct SplitConfig {
  using Partials = AttentionPartials<shape, tile>;
  using Rows = float[tile.splits][Partials::rows][Partials::floats];  // of a tile of rows
  static constexpr int tiles = Partials::P::rowTiles;
  static constexpr Offset bytes = static_cast<Offset>(tiles) * sizeof(Rows);
};

template <AttentionShape shape, AttentionTile tile>
struct SplitArrivals {
  unsigned of[SplitConfig<shape, tile>::tiles];
};

/// In the place of AttentionPartials: a workspace of SplitConfig::bytes that a launch finds
/// undefined, aligned to 16 bytes, and who has arrived.
template <AttentionShape shape, AttentionTile tile>
struct SplitPartials {
  typename SplitConfig<shape, tile>::Rows *of;
  unsigned *arrived;
  __device__ __forceinline__ SplitPartials(float *rows, SplitArrivals<shape, tile> &arrivals)
      : of(reinterpret_cast<decltype(of)>(rows)), arrived(arrivals.of) {}
};

}  // namespace weft::sm80
