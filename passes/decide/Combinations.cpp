// See Combinations.h.
#include "passes/decide/Combinations.h"

#include "kernel/Error.h"
#include "passes/select/KernelSpaces.h"

#include <algorithm>

namespace weft::decision {
namespace {

/// Candidates of alternatives that lack a pinned tensor, where others of their site have it, have
/// no plan.
void dropLackingPinned(select::Problem &problem, const std::vector<Pin> &pins) {
  const auto has = [&](const std::vector<int> &ops, const std::string &name) {
    return std::ranges::any_of(ops, [&](int op) {
      return std::ranges::any_of(problem.opOutputs[size_t(op)], [&](int tensor) {
        return problem.tensors[size_t(tensor)].name == name;
      });
    });
  };
  for (const Pin &pin : pins)
    for (const std::vector<std::vector<int>> &alternatives : problem.sites) {
      if (std::ranges::none_of(alternatives, [&](const auto &ops) { return has(ops, pin.tensor); }))
        continue;
      for (const std::vector<int> &ops : alternatives)
        if (!has(ops, pin.tensor))
          std::erase_if(problem.candidates, [&](const select::Candidate &candidate) {
            return std::ranges::count(ops, candidate.ops.front()) > 0;
          });
    }
}

}  // namespace

Combinations bestCombinations(const select::JoinedVariants &joined, const PlanContext &context,
                              const Options &asked, const std::set<std::pair<int, int>> &forced,
                              const std::set<std::pair<int, int>> &forbidden) {
  select::Options options;
  options.free = context.free;
  options.softmax = asked.softmax;
  options.searchBytes = asked.searchMemory.bytesOfSearch(1);
  options.forceFused = forced;
  options.forbidFused = forbidden;
  std::vector<std::vector<Pin>> questions{{}};
  if (!asked.pins.empty()) questions.push_back(asked.pins);
  Combinations result;
  for (const std::vector<Pin> &pins : questions) {
    select::Problem problem = joined.problem;
    applyPins(problem, pins);
    dropLackingPinned(problem, pins);
    try {
      const select::Selection selection =
          select::selectAmongAlternatives(problem, *context.spaces, options);
      const double bound = selection.best().lowerBound;
      result.lowerBound = std::min(bound, result.lowerBound.value_or(bound));
      for (const std::string &cut : selection.statistics().searchCuts) result.cuts.push_back(cut);
      const std::vector<size_t> chosen = select::plainest(joined, selection);
      if (!select::variantWith(joined, chosen) && std::ranges::count(result.found, chosen) == 0)
        result.found.push_back(chosen);
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    }
  }
  return result;
}

}  // namespace weft::decision
