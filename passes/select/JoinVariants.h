// Variants of one graph as one problem. An op that every variant has, reading and writing tensors
// that are the same in all, stands in it once. The others fall into sites (Sites.h): those of a
// variant that are connected by tensors of that variant alone, with those of the other variants
// that write the same tensors for the rest of the graph. What they are in the different variants
// are the alternatives of the site, which may lie in the forward and in the backward pass at once.
// Kernels of a variant may hold ops of a site and ops beside it. So every combination of
// alternatives is in the problem, which grows with their sum, not with their product.
//
// Invariant: every plan of a variant is a plan of the joint problem, which takes that variant's
// form at every site.
#pragma once

#include "passes/select/Selection.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::select {

struct JoinedVariants {
  Problem problem;                                 ///< its sites in the order of the graph
  std::vector<std::vector<size_t>> alternativeOf;  ///< by site and variant: which of the site's
  std::vector<std::vector<size_t>> variantOf;      ///< by site and alternative: the first with it
  std::vector<std::pair<size_t, int>> origins;     ///< by op: a variant, and the op there
  std::vector<std::vector<int>> numbers;           ///< by variant and op there: the op
  std::set<std::string> shared;                    ///< tensors that are the same in all variants

  /// By op of the problem; -1: every variant has it.
  std::vector<int> siteOfOps() const;

  /// Sites that have more than one.
  size_t choices() const;
};

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
