// Variants of one graph as one problem. Where the same tensors are live in all variants and no
// candidate kernel crosses, the graph is cut; what lies between two cuts is a site (Sites.h), and
// its different forms in the variants are its alternatives. So every combination of them is in the
// problem, which grows with the sum of the alternatives, not with their product.
//
// Invariant: a plan of the joint problem that takes the forms of one variant at every site is a
// plan of that variant, and the other way round.
#pragma once

#include "passes/select/Selection.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::select {

struct JoinedVariants {
  Problem problem;                                 ///< its sites in the order of the graph
  std::vector<std::vector<size_t>> alternativeOf;  ///< by site and variant: which of the site's
  std::vector<std::vector<size_t>> variantOf;      ///< by site and alternative: the first with it
  /// By site and variant, its ops in the variant's problem, ascending.
  std::vector<std::vector<std::vector<int>>> opsOf;
  /// Of the first variant's problem, by op.
  std::vector<int> siteOf;

  /// Sites that have more than one.
  size_t choices() const;
};

/// By op of the problem, how many cuts lie before it; only tensors in `mayCross` may be live there.
std::vector<int> partsOf(const Problem &problem, const std::set<std::string> &mayCross);

/// `mayCross`, by variant: names of tensors that are the same in every variant that has them.
/// Nothing where there are fewer than two sites with alternatives: then every combination is a
/// variant.
std::optional<JoinedVariants> joinVariants(const std::vector<const Problem *> &variants,
                                           const std::vector<std::set<std::string>> &mayCross);

/// What the best plan of the joint problem, or of some of its candidates, has at each site: a
/// variant.
std::vector<size_t> variantsIn(const JoinedVariants &joined, const Selection &of);

/// The same with as few changes as possible from one of the variants, where that costs nothing.
/// `of`: the selection of the joint problem.
std::vector<size_t> plainest(const JoinedVariants &joined, const Selection &of);

/// The one variant that has all these forms, if there is one.
std::optional<size_t> variantWith(const JoinedVariants &joined,
                                  const std::vector<size_t> &variantOfSite);

}  // namespace weft::select
