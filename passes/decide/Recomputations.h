// Which saved tensors of a graph that trains are tried together as computed again, where a plan may
// be held to a limit of memory. No MLIR.
#pragma once

#include <string>
#include <vector>

namespace weft::decision {

/// Sets of chains to be computed again together, as names: of up to three chains all sets; of more
/// each by itself, the first ones of any number, and each with the first.
std::vector<std::vector<std::string>> recomputedSets(
    const std::vector<std::vector<std::string>> &chains);

}  // namespace weft::decision
