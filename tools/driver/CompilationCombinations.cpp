// Variants that combine what others have in parts of the graph; see Compilation.h.
#include "tools/driver/Compilation.h"

#include "passes/CombineVariants.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"
#include "passes/decide/Combinations.h"
#include "tools/driver/VariantFile.h"

#include <algorithm>

namespace weft::driver {

bool Compilation::addCombination(std::vector<ProposedVariant> &variants, Phase first) const {
  decision::Combinations best = decision::decideCombinations(
      {.variants = variants.size(),
       .isOfOneGraph = imported.size() == 1,
       .isTrained = graphOf(*variants.front().module)->hasAttr(savedName),
       .apart = variants.front().projectionOfPart,
       .ask =
           [&] {
             return decision::Question{.problem = problem(variants),
                                       .options = {.pins = choices.pinned(),
                                                   .softmax = choices.softmax.value(),
                                                   .searchMemory = memory}};
           },
       .mayCross =
           [&] {
             std::vector<std::set<std::string>> names;
             for (const ProposedVariant &variant : variants)
               names.push_back(namesThatMayCross(graphOf(*variant.module)));
             return names;
           }});
  variants.front().boundOfCombinations = best.lowerBound;
  variants.front().cutsOfCombinations = std::move(best.cuts);
  std::vector<const ProposedVariant *> joined;
  for (const size_t v : best.variants) joined.push_back(&variants[v]);
  std::vector<ProposedVariant> added;
  for (const std::vector<size_t> &chosen : best.found)
    added.push_back(combined(joined, best.joined, chosen));
  if (!added.empty())
    for (ProposedVariant &variant : withFusions(std::move(added), first))
      variants.push_back(std::move(variant));
  return best.isComplete;
}

ProposedVariant Compilation::combined(const std::vector<const ProposedVariant *> &variants,
                                      const select::JoinedVariants &joined,
                                      const std::vector<size_t> &variantOfSite) const {
  std::vector<mlir::ModuleOp> modules;
  for (const ProposedVariant *variant : variants)
    modules.push_back(mlir::ModuleOp(variant->module.get()));
  CombinedGraph graph = combineVariants(modules, joined, variantOfSite);
  ProposedVariant result;
  result.module = std::move(graph.module);
  result.stackings = variants.front()->stackings;
  result.leftOut = variants.front()->leftOut;
  const std::vector<mlir::Operation *> ops = numberedOps(graphOf(*result.module));
  // By the rewrites that made ops together: what the last of these ops writes.
  std::map<std::vector<Rewrite>, std::string> lastOf;
  for (size_t op = 0; op < graph.origins.size(); ++op) {
    const auto &[variant, number] = graph.origins[op];
    const std::vector<std::vector<Rewrite>> &rewrites = variants[variant]->rewritesOfOp;
    result.rewritesOfOp.push_back(number < rewrites.size() ? rewrites[number]
                                                           : std::vector<Rewrite>());
    if (!result.rewritesOfOp.back().empty())
      lastOf[result.rewritesOfOp.back()] = writtenName(ops[op]->getResult(0));
  }
  const auto isPresent = [&](const Rewrite &rewrite) {
    const Rewrite made =
        rewrite.kind == Rewrite::Kind::rotateInStack || rewrite.kind == Rewrite::Kind::rotateApart
            ? Rewrite{Rewrite::Kind::stack, rewrite.subject}
            : rewrite;
    return std::ranges::any_of(
        lastOf, [&](const auto &one) { return std::ranges::count(one.first, made) > 0; });
  };
  std::set<size_t> used(variantOfSite.begin(), variantOfSite.end());
  for (const size_t v : used) {
    for (const Rewrite &rewrite : variants[v]->rewrites) {
      if (std::ranges::count(result.rewrites, rewrite) > 0) continue;
      const bool isImported = std::ranges::count(imported.front().rewrites, rewrite) > 0;
      if (!isImported && !isPresent(rewrite)) continue;
      result.rewrites.push_back(rewrite);
      const bool isWhole = std::ranges::all_of(used, [&](size_t other) {
        return std::ranges::count(variants[other]->rewrites, rewrite) > 0;
      });
      // What a variant does everywhere is named with the last tensor that it writes here.
      const auto last = lastOf.find({rewrite});
      if (!isImported && !isWhole && rewrite.kind != Rewrite::Kind::stack && last != lastOf.end())
        result.rewrites.push_back({Rewrite::Kind::atSite, last->second});
    }
    for (const std::string &note : variants[v]->notes)
      if (std::ranges::count(result.notes, note) == 0) result.notes.push_back(note);
    if (result.norms.empty()) result.norms = variants[v]->norms;
  }
  return result;
}

}  // namespace weft::driver
