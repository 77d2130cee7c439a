// The knobs of fused attention backward on sm_90a, and the family.
#pragma once

#include "kernel/Family.h"

#include <string_view>

namespace weft {

/// Which tiles sum the gradient of queries: those of keys, which sum the other two as well and add
/// to it in a workspace, one after the other (together); or tiles of queries, which compute scores
/// again and wait for nobody (apart). Where the gradients of keys and of values do not fit the
/// registers together, tiles of each of the three gradients (single).
enum class BackwardGradients : uint8_t { together, apart, single };
/// "together", "apart", "single".
std::string_view nameOf(BackwardGradients gradients);
inline constexpr BackwardGradients backwardGradients[] = {
    BackwardGradients::together, BackwardGradients::apart, BackwardGradients::single};

/// In which order tiles of keys add to the gradient of a block of queries in the workspace: that of
/// the keys, so that every launch leaves the same bits (ordered), or as they come (unordered).
enum class GradientSums : uint8_t { ordered, unordered };
/// "ordered", "unordered".
std::string_view nameOf(GradientSums sums);
inline constexpr GradientSums gradientSums[] = {GradientSums::ordered, GradientSums::unordered};

/// Persistent blocks of one warpgroup of helpers and one or two of consumers, 64 rows of a tile
/// each (sm90_attention_backward.cuh; apart: sm90_split_backward.cuh; single:
/// sm90_single_backward.cuh, whose tiles and blocks are of queries and of keys as those apart).
struct Sm90AttentionBackwardKnobs {
  BackwardGradients gradients = BackwardGradients::together;
  GradientSums sums = GradientSums::ordered;  ///< together, of keys of several tiles
  int tileQueries = 128;  ///< queries of a block: 64, 128; apart: queries or keys of one, 32, 64
  int tileKeys = 128;     ///< keys of a tile: 128; apart: keys or queries of one, 64, 128
  int headGroup = 1;      ///< heads of tiles that are taken together, first keys first
  /// Heads of queries that share a tile's keys; 0: all of a group; apart, a divisor of theirs.
  /// Where there are fewer, several tiles have the same keys, and the last one adds up their
  /// gradients of these.
  int headsOfTile = 0;
  int blocks = 132;  ///< of the persistent grid, at most
  static const Family &family();
  auto operator<=>(const Sm90AttentionBackwardKnobs &) const = default;
};

extern const Family sm90AttentionBackwardFamily;
inline const Family &Sm90AttentionBackwardKnobs::family() { return sm90AttentionBackwardFamily; }

}  // namespace weft
