// Which combinations of what the variants have in parts of the graph become variants: those that a
// joint search prefers to every variant. No MLIR.
//
// Invariant: with pins there is also the best without them, so that the price of a pin is against
// the best of all plans.
#pragma once

#include "passes/decide/Decide.h"
#include "passes/select/JoinVariants.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::decision {

/// The variants of a graph as whoever has them asks about them.
struct CombinationQuestion {
  size_t variants = 0;
  bool isOfOneGraph = true;        ///< all variants are rewritten from one
  bool isTrained = false;          ///< it has a backward pass
  std::vector<std::string> apart;  ///< tensors of the first variant that have a form each
  /// Called where there may be something to combine. Of the options, pins, softmax and the memory
  /// of the search count.
  std::function<Question()> ask;
  /// By variant, as of select::joinVariants; called after `ask`.
  std::function<std::vector<std::set<std::string>>()> mayCross;
};
struct Combinations {
  /// Whether the variants and what was found are all that is to be weighed. Else the variants of
  /// the whole graph are: forms of the tensors apart cannot be chosen one by one.
  bool isComplete = true;
  std::vector<size_t> variants;            ///< that were joined
  select::JoinedVariants joined;           ///< these as one problem
  std::vector<std::vector<size_t>> found;  ///< by site, which of these; none of them is a variant
  std::optional<double> lowerBound;        ///< seconds that no combination beats, by kernels alone
  std::vector<std::string> cuts;           ///< what the limits of the search left out
};
/// The first part of the decision of a problem, for whoever has the graphs: a combination that is
/// found becomes a variant of the problem that decide() is asked. Nothing is joined or found where
/// the variants are of several graphs or have too few sites, or where the ops of tensors apart are
/// not in different sites. Of a graph that trains, only variants near the least bound are joined. A
/// question that has no plan finds no combination: each variant says by itself what it lacks.
Combinations decideCombinations(const CombinationQuestion &question);

}  // namespace weft::decision
