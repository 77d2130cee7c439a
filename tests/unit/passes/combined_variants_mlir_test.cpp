// What variants have in parts of a graph, combined: every combination computes what the graph
// computes, takes by itself what the joint problem says, and the joint plan is the best of all.
#include "passes/CombineVariants.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/SavedTensors.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/select/GraphParts.h"
#include "passes/select/KernelSpaces.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

using namespace weft;
using namespace weft::test;

namespace {

std::unique_ptr<Loaded> layersOf(const std::string &name, const Dims &dims, int layers,
                                 DType dtype) {
  auto loaded = std::make_unique<Loaded>();
  models::Request request;
  request.model = name;
  request.dims = dims;
  request.dtype = dtype;
  if (layers > 1) request.layers = layers;
  loaded->module = models::build(request, loaded->context).module;
  return loaded;
}

const Device &device() {
  static const Device h200 = findDevice("h200");
  return h200;
}

FuseOptions fuseOptions() {
  FuseOptions options;
  options.epilogueRejection = epilogueRejections(device());
  options.prologueRejection = prologueRejections(device());
  options.attentionRejection = attentionRejections(device());
  options.attentionBackwardRejection = attentionBackwardRejections(device());
  return options;
}

select::Problem problemOf(mlir::ModuleOp module) {
  GraphOp graph = graphOf(module);
  return toProblem(graph, {}, proposeFusions(graph, fuseOptions()));
}

const CostModel &model() {
  static const std::unique_ptr<CostModel> analytic = analyticCostModel(device());
  return *analytic;
}

/// A graph and the variants that are alike in its parts, joined.
struct Joined {
  Joined(const std::string &name, const Dims &dims, int layers, DType dtype, bool isTrained = false)
      : loaded(layersOf(name, dims, layers, dtype)) {
    if (isTrained) REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    VariantOptions options;
    options.canFuseAttention = true;
    options.subVectors = {dims.at("j") < 64 ? 4 : 64};
    if (!isTrained)
      options.partOfOp = [](mlir::ModuleOp module) {
        const select::Problem problem = problemOf(module);
        return select::partsOf(problem, namesThatMayCross(graphOf(module)));
      };
    variants = proposeVariants(*loaded->module, options);
    std::vector<std::set<std::string>> mayCross;
    for (const Variant &variant : variants) {
      modules.push_back(mlir::ModuleOp(
          mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp(variant.module.get()).clone())
              .release()));
      problems.push_back(problemOf(modules.back()));
      mayCross.push_back(namesThatMayCross(graphOf(modules.back())));
    }
    std::vector<const select::Problem *> all;
    for (const select::Problem &problem : problems) all.push_back(&problem);
    joined = select::joinVariants(all, mayCross);
  }
  ~Joined() {
    for (mlir::ModuleOp module : modules) module.erase();
  }

  /// Calls `visit` with a variant of every site, for all combinations of alternatives.
  void forEachCombination(const std::function<void(const std::vector<size_t> &)> &visit) const {
    std::vector<size_t> chosen(joined->variantOf.size(), 0);
    for (;;) {
      std::vector<size_t> variants;
      for (size_t site = 0; site < chosen.size(); ++site)
        variants.push_back(joined->variantOf[site][chosen[site]]);
      visit(variants);
      size_t site = 0;
      while (site < chosen.size() && ++chosen[site] == joined->variantOf[site].size())
        chosen[site++] = 0;
      if (site == chosen.size()) return;
    }
  }

  std::unique_ptr<Loaded> loaded;
  std::vector<Variant> variants;
  std::vector<mlir::ModuleOp> modules;
  std::vector<select::Problem> problems;
  std::optional<select::JoinedVariants> joined;
};

/// Whether the op of the joint problem stands in the backward pass of its variant.
bool isBackward(const Joined &of, int op) {
  const auto &[variant, number] = of.joined->origins[size_t(op)];
  GraphOp graph = graphOf(of.modules[variant]);
  mlir::Operation *last = lastForwardOp(graph);
  return last->isBeforeInBlock(describeGraph(graph).ops[size_t(number)]);
}

}  // namespace

TEST_CASE("every combination of what variants have in parts computes what the graph computes") {
  for (const auto &[name, dims] : std::map<std::string, Dims>{
           {"bert-base", smallEncoder},
           {"gpt2", {{"b", 1}, {"j", 6}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}}}) {
    INFO(name);
    const Joined two(name, dims, 2, DType::f32);
    REQUIRE(two.joined);
    CHECK(two.joined->choices() == 2);
    int combinations = 0, mixed = 0;
    two.forEachCombination([&](const std::vector<size_t> &chosen) {
      ++combinations;
      const CombinedGraph combined = combineVariants(two.modules, *two.joined, chosen);
      CHECK(combined.origins.size() == numberedOps(graphOf(*combined.module)).size());
      if (select::variantWith(*two.joined, chosen)) return;
      if (++mixed % 7 == 1) requireSame(two.loaded->graph(), graphOf(*combined.module));
    });
    CHECK(combinations == int(two.variants.size() * two.variants.size()));
    CHECK(mixed == combinations - int(two.variants.size()));
  }
}

TEST_CASE("a trained graph has sites that span both passes, and every combination trains alike") {
  for (const auto &[name, dims] : std::map<std::string, Dims>{
           {"transformer-decoder",
            {{"b", 1}, {"j", 3}, {"m", 5}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}},
           {"llama-3-8b", smallLlama}}) {
    INFO(name);
    Joined trained(name, dims, 1, DType::f32, true);
    REQUIRE(trained.joined);
    const select::JoinedVariants &joined = *trained.joined;
    CHECK(joined.choices() >= 2);
    int spanning = 0;
    for (const auto &alternatives : joined.problem.sites)
      for (const std::vector<int> &ops : alternatives)
        spanning += std::ranges::any_of(ops, [&](int op) { return isBackward(trained, op); }) &&
                    std::ranges::any_of(ops, [&](int op) { return !isBackward(trained, op); });
    CHECK(spanning > 1);
    int combinations = 0, checked = 0;
    trained.forEachCombination([&](const std::vector<size_t> &chosen) {
      if (select::variantWith(joined, chosen) || ++combinations % 37 != 1 || checked == 12) return;
      ++checked;
      const CombinedGraph combined = combineVariants(trained.modules, joined, chosen);
      GraphOp graph = graphOf(*combined.module);
      CHECK(combined.origins.size() == numberedOps(graph).size());
      requireSame(trained.loaded->graph(), graph);
      // What is saved is what the backward pass reads of the forward pass.
      const mlir::Attribute saved = graph->getAttr(savedName);
      CHECK(mlir::cast<mlir::ArrayAttr>(saved).size() > 0);
      listSavedTensors(graph);
      CHECK(graph->getAttr(savedName) == saved);
    });
    CHECK(checked >= 5);
  }
}

TEST_CASE("the joint plan is the best over all combinations, each of which takes what it says") {
  const Dims dims{{"b", 1}, {"j", 128}, {"h", 2}, {"p", 64}, {"i", 128}, {"u", 256}};
  const Joined two("bert-base", dims, 2, DType::f16);
  REQUIRE(two.joined);
  select::Options options;
  options.nearBest = 1e9;
  select::SharedSpaces shared(model());
  const select::Selection together =
      select::selectAmongAlternatives(two.joined->problem, shared, options);
  double best = INFINITY;
  two.forEachCombination([&](const std::vector<size_t> &chosen) {
    const CombinedGraph combined = combineVariants(two.modules, *two.joined, chosen);
    const select::Selection one = select::select(problemOf(*combined.module), model(), options);
    CHECK(one.best().seconds >= together.best().seconds * (1 - 1e-12));
    CHECK(one.best().lowerBound >= together.best().lowerBound * (1 - 1e-12));
    best = std::min(best, one.best().seconds);
  });
  const CombinedGraph chosen =
      combineVariants(two.modules, *two.joined, select::plainest(*two.joined, together));
  const double seconds = select::select(problemOf(*chosen.module), model(), options).best().seconds;
  CHECK(seconds == Approx(together.best().seconds).epsilon(1e-12));
  CHECK(seconds == Approx(best).epsilon(1e-12));
}

TEST_CASE("the variants that are joined grow with the alternatives of one layer") {
  const Joined two("bert-base", smallEncoder, 2, DType::f32),
      six("bert-base", smallEncoder, 6, DType::f32);
  REQUIRE(six.joined);
  CHECK(six.variants.size() == two.variants.size());
  CHECK(six.joined->choices() == 6);
  CHECK(six.joined->problem.ops.size() < 3 * two.joined->problem.ops.size() + 10);
}
