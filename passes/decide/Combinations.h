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
#include <vector>

namespace weft::decision {

struct Combinations {
  std::vector<size_t> variants;            ///< that were joined
  select::JoinedVariants joined;           ///< these as one problem
  std::vector<std::vector<size_t>> found;  ///< by site, which of these; none of them is a variant
  std::optional<double> lowerBound;        ///< seconds that no combination beats, by kernels alone
  std::vector<std::string> cuts;           ///< what the limits of the search left out
};
/// The first part of the decision of a problem, for whoever has the graphs: a combination that is
/// found becomes a variant of the problem that decide() is asked. Of the options, pins, softmax and
/// the memory of the search count. `mayCross`, by variant: as of select::joinVariants. `apart`:
/// tensors of the first variant whose ops must be in different sites. Nothing where these are not,
/// or the variants have too few sites. A question that has no plan finds no combination: each
/// variant says by itself what it lacks.
std::optional<Combinations> decideCombinations(const Problem &problem, const Options &options,
                                               const std::vector<std::set<std::string>> &mayCross,
                                               const std::vector<std::string> &apart,
                                               double within);

}  // namespace weft::decision
