// The decision of a graph that was put together from parts, each decided alone: what was decided of
// a part holds wherever the part stands.
#pragma once

#include "passes/decide/Decide.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace weft::decision {

/// A part where it stands in the whole.
struct PlacedPart {
  const Decision *decision = nullptr;
  std::vector<size_t> ops;                                     ///< of each of its: of the whole
  std::function<std::string(const std::string &)> placedText;  ///< of texts that name its tensors
};

/// One variant with one path: the steps of all parts in order, and behind those of the forward pass
/// the others from the last part to the first. The problem's only variant has a
/// candidate of the same ops for each of them. The lower bound is the sum of theirs: no plan beats
/// it in which no kernel crosses a cut. Throws Error(checkFailed) where the whole has no such
/// candidate, or one that reads or writes other tensors.
Decision joinedDecision(const Problem &whole, const Options &options,
                        const std::vector<PlacedPart> &parts);

}  // namespace weft::decision
