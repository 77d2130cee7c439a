// A joint search of what variants have in parts of the graph; see Combinations.h.
#include "passes/decide/Combinations.h"

#include "kernel/Error.h"
#include "passes/select/KernelSpaces.h"

#include <algorithm>
#include <utility>

namespace weft::decision {
namespace {

/// Of trained graphs the variants whose bound is within this of the least are combined.
constexpr double nearOfTrained = 0.1;

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
            return std::ranges::any_of(candidate.ops,
                                       [&](int op) { return std::ranges::count(ops, op) > 0; });
          });
    }
}

/// Pairs of ops of the variants, as numbers in the joint problem.
std::set<std::pair<int, int>> pairsIn(const select::JoinedVariants &joined,
                                      const std::vector<const Variant *> &variants,
                                      const std::set<std::pair<int, int>> Variant::*pairs) {
  std::set<std::pair<int, int>> result;
  for (size_t v = 0; v < variants.size(); ++v)
    for (const auto &[a, b] : variants[v]->*pairs)
      result.insert({joined.numbers[v][size_t(a)], joined.numbers[v][size_t(b)]});
  return result;
}

/// Whether each pair is of one alternative, or of ops that every plan has: a kernel that must hold
/// an op of a site says nothing where the site is computed in another way.
bool areWithinAlternatives(const std::set<std::pair<int, int>> &pairs,
                           const select::JoinedVariants &joined) {
  const std::vector<int> siteOf = joined.siteOfOps();
  return std::ranges::all_of(pairs, [&](const auto &pair) {
    return siteOf[size_t(pair.first)] == siteOf[size_t(pair.second)];
  });
}

/// Whether the ops that write these tensors of a problem are in a site each.
bool areApart(const std::vector<std::string> &tensors, const select::JoinedVariants &joined,
              const select::Problem &first) {
  const std::vector<int> siteOf = joined.siteOfOps();
  std::set<int> sites;
  for (size_t op = 0; op < first.ops.size(); ++op)
    for (const int tensor : first.opOutputs[op])
      if (std::ranges::count(tensors, first.tensors[size_t(tensor)].name) > 0)
        sites.insert(siteOf[size_t(joined.numbers.front()[op])]);
  return sites.size() >= tensors.size();
}

/// The variants that are combined: all, of a graph that trains those whose bound is near the least.
std::vector<size_t> nearBest(const Problem &asked, const select::Options &options, bool isTrained) {
  std::vector<double> bounds;
  for (const Variant &variant : asked.variants)
    bounds.push_back(
        isTrained ? select::lowerBoundOf(variant.problem, *asked.context.spaces, options) : 0);
  const double most = std::ranges::min(bounds) * (1 + nearOfTrained);
  std::vector<size_t> near;
  for (size_t v = 0; v < bounds.size(); ++v)
    if (!(bounds[v] > most)) near.push_back(v);
  return near;
}

}  // namespace

Combinations decideCombinations(const CombinationQuestion &question) {
  const Combinations none{.isComplete = question.apart.empty()};
  if (question.variants < 2 || !question.isOfOneGraph) return none;
  const auto [asked, askedOptions] = question.ask();
  const PlanContext &context = asked.context;
  select::Options options;
  options.free = context.free;
  options.softmax = askedOptions.softmax;
  options.searchBytes = askedOptions.searchMemory.bytesOfSearch(1);
  const std::vector<std::set<std::string>> mayCross = question.mayCross();
  Combinations result;
  result.variants = nearBest(asked, options, question.isTrained);
  std::vector<const select::Problem *> problems;
  std::vector<const Variant *> variants;
  std::vector<std::set<std::string>> mayCrossHere;
  for (const size_t v : result.variants) {
    variants.push_back(&asked.variants[v]);
    problems.push_back(&asked.variants[v].problem);
    mayCrossHere.push_back(mayCross[v]);
  }
  std::optional<select::JoinedVariants> joined = select::joinVariants(problems, mayCrossHere);
  if (!joined || !areApart(question.apart, *joined, *problems.front())) return none;
  options.forceFused = pairsIn(*joined, variants, &Variant::forced);
  options.forbidFused = pairsIn(*joined, variants, &Variant::forbidden);
  if (!areWithinAlternatives(options.forceFused, *joined)) return none;
  std::vector<std::vector<Pin>> questions{{}};
  if (!askedOptions.pins.empty()) questions.push_back(askedOptions.pins);
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
