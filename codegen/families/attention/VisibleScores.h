// How many scores of a fused attention its masks leave, as prices need it: an estimate from points
// spread over queries and keys; exact of block masks, whose tables are known (of up to 4 heads and
// 128 tiles of queries, where there are more).
#pragma once

#include "codegen/families/attention/AttentionProblem.h"

#include <cstdint>
#include <vector>

namespace weft {

struct VisibleScores {
  double share = 1;        ///< of all scores: what no mask excludes; unknown conditions hold
  bool hasMasks = false;   ///< any score op is one
  bool hasTables = false;  ///< any mask is a block mask, whose tiles lie anywhere
  int valueOps = 0;        ///< other score ops; and masks by documents, whose share nobody knows
  /// Tensors that these read whose elements for one tile lie in a row for each query or key: dense
  /// biases, and tables of distances by query or by key. Such a load of a warp touches eight lines.
  int scatteredInputs = 0;
};
/// What a load of such an input takes of a multiprocessor, a score: eight lines of L1 for 32 scores
/// at 1.8 GHz, an estimate.
constexpr double scatteredLoadSeconds = 1.4e-10;
VisibleScores visibleScores(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem);

/// Tensors that score ops gather elements of at distances, from a row for each query or for each
/// key: their loads take registers, so that families limit tiles.
int gatheredTables(const Kernel &kernel, const AttentionRegion &region,
                   const AttentionProblem &problem);

/// What tiles are along: queries, walked in blocks of keys, or keys, walked in blocks of queries.
enum class TilesOf : uint8_t { queries, keys };

/// Of every tile of a fused attention with block masks, the blocks that it sees, summed over up to
/// 4 heads whose tables differ. Empty without such masks.
std::vector<int64_t> seenByTiles(const Kernel &kernel, const AttentionRegion &region,
                                 const AttentionProblem &problem, int64_t tileRows,
                                 int64_t blockColumns, TilesOf of = TilesOf::queries);

/// Blocks that a tile sees, any point of them: the mean over tiles, and of the tile that sees most;
/// and the mean of those that masks leave in part.
struct VisibleBlocks {
  double mean = 0, most = 0, mixed = 0;
};
VisibleBlocks visibleBlocks(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem, int64_t tileRows, int64_t blockColumns,
                            TilesOf of = TilesOf::queries);

}  // namespace weft
