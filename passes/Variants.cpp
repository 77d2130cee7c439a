// Whole variants: the product of the choices that reach across a graph. Each is a rewritten clone, so the selector solves
// each alone and the cheapest wins. A few dozen at most: a group of projections has up to four ways, attention two.
#include "kernel/Error.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"

#include <set>

namespace weft {
namespace {

/// One way to stack a group: members first .. last of it; nothing stacked if absent.
struct Stacking {
  size_t group = 0, first = 0, last = 0;
  std::string name;
};
using Choice = std::optional<Stacking>;

std::string rewriteName(const ProjectionGroup &group, size_t first, size_t last) {
  ProjectionGroup part{.data = group.data, .projections = {group.projections.begin() + static_cast<long>(first),
                                                           group.projections.begin() + static_cast<long>(last) + 1}};
  return "stack-" + part.name();
}

/// separate; every two neighbours (q with k, k with v); all. A group of two has no third way.
std::vector<Choice> stackingChoices(const ProjectionGroup &group, size_t index, const std::string &mode) {
  const size_t size = group.projections.size();
  std::vector<Choice> choices;
  const auto stack = [&](size_t first, size_t last) {
    choices.push_back(Stacking{index, first, last, rewriteName(group, first, last)});
  };
  if (mode == "auto" || mode == "separate")
    choices.push_back(std::nullopt);
  if (mode == "auto" || mode == "two")
    for (size_t first = 0; first + 1 < size; ++first)
      stack(first, first + 1);
  if (mode == "three" || (mode == "auto" && size > 2))
    stack(0, size - 1);
  return choices;
}

std::vector<std::vector<Choice>> product(const std::vector<std::vector<Choice>> &lists) {
  std::vector<std::vector<Choice>> result{{}};
  for (const std::vector<Choice> &list : lists) {
    std::vector<std::vector<Choice>> longer;
    for (const std::vector<Choice> &prefix : result)
      for (const Choice &choice : list) {
        longer.push_back(prefix);
        longer.back().push_back(choice);
      }
    result = std::move(longer);
  }
  return result;
}

GraphOp graphOf(mlir::ModuleOp module) {
  auto graphs = module.getOps<GraphOp>();
  if (graphs.empty())
    throw Error::badInput("module has no weft.graph");
  return *graphs.begin();
}

std::vector<SoftmaxOp> softmaxesOf(GraphOp graph) {
  auto ops = graph.getBody().front().getOps<SoftmaxOp>();
  return {ops.begin(), ops.end()};
}

Variant rewrite(mlir::ModuleOp module, const std::vector<Choice> &stackings, bool decompose, int subVector) {
  Variant variant{.rewrites = {}, .module = mlir::OwningOpRef<mlir::ModuleOp>(module.clone())};
  GraphOp graph = graphOf(*variant.module);
  std::vector<FusionRecord> records;
  const std::vector<ProjectionGroup> groups = findProjectionGroups(graph, records);
  for (const Choice &choice : stackings)
    if (choice) {
      stackProjections(groups[choice->group], choice->first, choice->last);
      variant.rewrites.push_back(choice->name);
    }
  if (decompose) {
    for (SoftmaxOp softmax : softmaxesOf(graph))
      decomposeSoftmax(softmax, subVector);
    variant.rewrites.push_back("decompose-softmax-" + std::to_string(subVector));
  }
  return variant;
}

void check(const VariantOptions &options) {
  const auto oneOf = [](const std::string &what, const std::string &value, const std::set<std::string> &known) {
    if (!known.count(value))
      throw Error::badInput("{} '{}' is not one of {}", what, value, fmt::join(known, ", "));
  };
  oneOf("stacking", options.stacking, {"auto", "separate", "two", "three"});
  oneOf("attention", options.attention, {"auto", "unfused", "decomposed"});
  if (options.subVector < 1)
    throw Error::badInput("sub-vector of {} elements; the least is 1", options.subVector);
}

}  // namespace

std::vector<Variant> proposeVariants(mlir::ModuleOp module, const VariantOptions &options) {
  check(options);
  GraphOp graph = graphOf(module);
  std::vector<FusionRecord> records;
  const std::vector<ProjectionGroup> groups = findProjectionGroups(graph, records);
  std::vector<std::vector<Choice>> stackings;
  for (size_t index = 0; index < groups.size(); ++index)
    stackings.push_back(stackingChoices(groups[index], index, options.stacking));
  std::vector<bool> decompositions;
  const bool hasSoftmax = !softmaxesOf(graph).empty();
  if (options.attention != "decomposed" || !hasSoftmax)
    decompositions.push_back(false);
  if (options.attention != "unfused" && hasSoftmax)
    decompositions.push_back(true);
  std::vector<Variant> variants;
  for (bool decompose : decompositions)
    for (const std::vector<Choice> &choice : product(stackings)) {
      variants.push_back(rewrite(module, choice, decompose, options.subVector));
      variants.back().stackings = records;
    }
  return variants;
}

}  // namespace weft
