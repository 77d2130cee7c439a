// What the phases before selection print: variants, fusion attempts, candidates with their configurations.
#pragma once

#include "tools/driver/Compilation.h"

#include <string>
#include <vector>

namespace weft::driver {

/// The graph of every variant, in the form that VariantFile.h describes and --start-from reads.
std::string printVariants(const std::vector<ProposedVariant> &variants);
/// The same with candidates and fusion records as attributes of each graph.
std::string printProposals(const std::vector<ProposedVariant> &variants);
/// One row an attempt: ops, accepted or the reason, what it saves.
std::string printFusions(const std::vector<ProposedVariant> &variants, const Device &device, bool json);
/// One row a candidate kernel: ops, legal configurations, why families do not take it.
std::string printCandidates(std::vector<ProposedVariant> &variants, const Device &device, bool json);
/// "3 variants, 12,345 configurations of 63 kernels, 801 states, selected in 0.41 s".
std::string selectionLine(const Selected &selected);

}  // namespace weft::driver
