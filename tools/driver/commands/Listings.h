// What the phases before selection print: variants, fusion attempts, candidates with their
// configurations.
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
std::string printFusions(const std::vector<ProposedVariant> &variants, const Device &device,
                         bool json);
/// One row a candidate kernel: ops, legal configurations, why families do not take it.
std::string printCandidates(std::vector<ProposedVariant> &variants, const Device &device,
                            bool json);
/// How much was offered to the search and measured, what was left out and why, how long it took,
/// how good the plan is known to be.
std::string selectionLines(const decision::Decision &decision);

}  // namespace weft::driver
