// What the phases before selection print: variants, fusion attempts, candidates with their configurations.
#pragma once

#include "tools/driver/Compilation.h"

#include <string>
#include <vector>

namespace weft::driver {

/// The graph of every variant, each under a comment with its name, separated as MLIR splits its input.
std::string printVariants(const std::vector<ProposedVariant> &variants);
/// One row an attempt: ops, accepted or the reason, what it saves.
std::string printFusions(const std::vector<ProposedVariant> &variants, const Device &device, bool json);
/// One row a candidate kernel: ops, legal configurations, why families do not take it.
std::string printCandidates(std::vector<ProposedVariant> &variants, const Device &device, bool json);
/// "3 variants, 12,345 configurations of 63 kernels, 801 states, selected in 0.41 s".
std::string selectionLine(const Selected &selected);

}  // namespace weft::driver
