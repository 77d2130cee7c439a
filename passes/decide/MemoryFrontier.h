// The frontier of time and memory: of the plans of all variants, with what launches work in and
// without, whole and in chunks, those that no other beats in both. Variants differ in what the
// backward pass computes again, so in training this is what is kept against what is recomputed.
//
// One search solves all variants, each of them twice, over shared spaces and prices; nothing is
// selected for a single point. No MLIR.
#pragma once

#include "passes/decide/Decide.h"

namespace weft::decision {

struct FrontierPoint {
  double seconds = 0;       ///< predicted, of its kernels: what --max-memory compares
  double graphSeconds = 0;  ///< predicted, as one graph
  int64_t workspaceBytes = 0;
  size_t index = 0;          ///< of Problem::variants
  std::string variant = {};  ///< its name
  std::vector<Rewrite> rewrites = {};
  int chunks = 1;
};

/// Those that no other point beats in time and memory, by growing memory and so by falling time. Of
/// points that are equal in one, the better in the other; of equal ones the first.
std::vector<FrontierPoint> undominated(std::vector<FrontierPoint> points);

/// All plans that were priced, undominated or not. An error as of decide().
Expected<std::vector<FrontierPoint>> memoryPoints(const Problem &problem, const Options &options);

}  // namespace weft::decision
