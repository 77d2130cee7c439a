// Which combinations of what the variants have in parts of the graph become variants: those that a
// joint search prefers to every variant. No MLIR.
//
// Invariant: with pins there is also the best without them, so that the price of a pin is against
// the best of all plans.
#pragma once

#include "passes/decide/Decide.h"
#include "passes/select/JoinVariants.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::decision {

struct Combinations {
  std::vector<std::vector<size_t>> found;  ///< by site, the variant; none of them is a variant
  std::optional<double> lowerBound;        ///< seconds that no combination beats, by kernels alone
  std::vector<std::string> cuts;           ///< what the limits of the search left out
};
/// Of the options, pins, softmax and the memory of the search count. `forced`, `forbidden`: pairs
/// of ops of the joint problem that --fuse and --no-fuse name. A question that has no plan finds no
/// combination: each variant says by itself what it lacks.
Combinations bestCombinations(const select::JoinedVariants &joined, const PlanContext &context,
                              const Options &options, const std::set<std::pair<int, int>> &forced,
                              const std::set<std::pair<int, int>> &forbidden);

}  // namespace weft::decision
