// The path of a graph that was put together from parts, each with a path of its own: what was
// decided of a part holds wherever the part stands.
#pragma once

#include "passes/select/Selection.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace weft::decision {

/// A part where it stands in the whole.
struct PlacedPart {
  const select::Problem *problem = nullptr;
  const select::SelectionResult *path = nullptr;
  size_t firstOp = 0;                                          ///< of the whole: its op 0
  std::function<std::string(const std::string &)> placedText;  ///< of texts that name its tensors
};

/// The steps of all parts in order, as steps of the whole, which has a candidate of the same ops
/// for each of theirs. Its lower bound is the sum of theirs: no plan beats it in which no kernel
/// crosses a cut. Throws Error(checkFailed) where the whole has no such candidate, or one that
/// reads or writes other tensors.
select::SelectionResult joinedPath(const select::Problem &whole,
                                   const std::vector<PlacedPart> &parts);

/// Counts of several searches together; a part's count as often as it stands.
select::Statistics joinedStatistics(const std::vector<const select::Statistics *> &searches);

}  // namespace weft::decision
