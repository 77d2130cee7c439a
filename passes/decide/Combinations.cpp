// A joint search of what variants have in parts of the graph; see Combinations.h.
#include "passes/decide/Combinations.h"

#include "kernel/Error.h"
#include "passes/select/KernelSpaces.h"

#include <algorithm>
#include <utility>

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

/// Pairs of ops of the variants, as numbers in the joint problem.
std::set<std::pair<int, int>> pairsIn(const select::JoinedVariants &joined,
                                      const std::vector<Variant> &variants,
                                      const std::set<std::pair<int, int>> Variant::*pairs) {
  std::set<std::pair<int, int>> result;
  for (size_t site = 0; site < joined.variantOf.size(); ++site)
    for (size_t one = 0; one < joined.variantOf[site].size(); ++one) {
      const size_t variant = joined.variantOf[site][one];
      const std::vector<int> &own = joined.opsOf[site][variant],
                             &joint = joined.problem.sites[site][one];
      for (const auto &[a, b] : variants[variant].*pairs) {
        const auto first = std::ranges::find(own, a), second = std::ranges::find(own, b);
        if (first != own.end() && second != own.end())
          result.insert({joint[size_t(first - own.begin())], joint[size_t(second - own.begin())]});
      }
    }
  return result;
}

/// Whether the ops that write these tensors of a problem are in a site each.
bool areApart(const std::vector<std::string> &tensors, const select::Problem &problem,
              const std::vector<int> &siteOf) {
  std::set<int> sites;
  for (size_t op = 0; op < problem.ops.size(); ++op)
    for (const int tensor : problem.opOutputs[op])
      if (std::ranges::count(tensors, problem.tensors[size_t(tensor)].name) > 0)
        sites.insert(siteOf[op]);
  return sites.size() >= tensors.size();
}

}  // namespace

std::optional<Combinations> decideCombinations(const Problem &asked, const Options &askedOptions,
                                               const std::vector<std::set<std::string>> &mayCross,
                                               const std::vector<std::string> &apart) {
  const PlanContext &context = asked.context;
  std::vector<const select::Problem *> variants;
  for (const Variant &variant : asked.variants) variants.push_back(&variant.problem);
  std::optional<select::JoinedVariants> joined = select::joinVariants(variants, mayCross);
  if (!joined || !areApart(apart, *variants.front(), joined->siteOf)) return std::nullopt;
  select::Options options;
  options.free = context.free;
  options.softmax = askedOptions.softmax;
  options.searchBytes = askedOptions.searchMemory.bytesOfSearch(1);
  options.forceFused = pairsIn(*joined, asked.variants, &Variant::forced);
  options.forbidFused = pairsIn(*joined, asked.variants, &Variant::forbidden);
  std::vector<std::vector<Pin>> questions{{}};
  if (!askedOptions.pins.empty()) questions.push_back(askedOptions.pins);
  Combinations result;
  for (const std::vector<Pin> &pins : questions) {
    select::Problem problem = joined->problem;
    applyPins(problem, pins);
    dropLackingPinned(problem, pins);
    try {
      const select::Selection selection =
          select::selectAmongAlternatives(problem, *context.spaces, options);
      const double bound = selection.best().lowerBound;
      result.lowerBound = std::min(bound, result.lowerBound.value_or(bound));
      for (const std::string &cut : selection.statistics().searchCuts) result.cuts.push_back(cut);
      const std::vector<size_t> chosen = select::plainest(*joined, selection);
      if (!select::variantWith(*joined, chosen) && std::ranges::count(result.found, chosen) == 0)
        result.found.push_back(chosen);
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported && error.kind != ErrorKind::strictMiss) throw;
    }
  }
  result.joined = std::move(*joined);
  return result;
}

}  // namespace weft::decision
