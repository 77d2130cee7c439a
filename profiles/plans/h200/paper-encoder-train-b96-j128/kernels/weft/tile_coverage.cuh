// How much of a tile of scores masks leave, and what a kernel without score ops or masks asks in
// the place of emitted functions.
#pragma once

namespace weft {

/// empty: every score of the tile is excluded, and the tile is skipped; full: none is, and masks
/// are left out; mixed: the masks decide score by score.
enum class TileCoverage { empty, mixed, full };

/// A score as the contraction gives it.
struct UnchangedScore {
  __device__ __forceinline__ float operator()(float score, int, int, int) const { return score; }
};

/// The coverage where there is no mask.
struct FullCoverage {
  __device__ __forceinline__ TileCoverage operator()(int, int, int, int, int) const {
    return TileCoverage::full;
  }
};

}  // namespace weft
