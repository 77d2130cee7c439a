// The order in which the layers of the selection graph finish ops (FinishedOpLattice.h): ops that
// may share a kernel are close together.
//
// The order changes only the number of layers. A candidate of two distant ops doubles the sets of
// finished ops between them, because each such set has the early op finished or not; k such
// candidates that are open at once make 2^k sets. Every gradient that may share a kernel with the
// update of its weights is such a candidate.
#pragma once

#include "passes/select/OpSet.h"

#include <vector>

namespace weft::select {

/// A topological order that keeps few choices open. `kernels`: ops of each candidate that may be
/// taken; `producers`: per op, the ops whose results it reads. Deterministic; where nothing is
/// gained, lower ops come first.
std::vector<int> compactOrder(const std::vector<OpSet> &kernels,
                              const std::vector<OpSet> &producers);

}  // namespace weft::select
