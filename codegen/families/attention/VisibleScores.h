// How many scores of a fused attention its masks leave, as prices need it: an estimate from points
// spread over queries and keys.
#pragma once

#include "codegen/families/attention/AttentionProblem.h"

namespace weft {

struct VisibleScores {
  double share = 1;         ///< of all scores: what no mask excludes; unknown conditions hold
  double largestShare = 1;  ///< the same of the query that sees most
  bool hasMasks = false;    ///< any score op is one
  int valueOps = 0;         ///< score ops that are none
};
VisibleScores visibleScores(const Kernel &kernel, const AttentionRegion &region,
                            const AttentionProblem &problem);

}  // namespace weft
