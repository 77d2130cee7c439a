// In which order the layers of the selection graph finish ops (FinishedOpLattice.h): kernels that
// share ops stand close together.
//
// The order decides nothing but how many layers there are: a kernel that begins at one op and ends
// at a far later one is either taken or not by the time that the ops between them are finished, and
// k such choices that are open at once make 2^k sets of finished ops. Every gradient that may share
// a kernel with the update of its weights is such a choice.
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
