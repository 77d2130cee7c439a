// The plan of a whole model's training step, forward, backward and update, computes what its graph
// does.
#include "passes/decide/PathPlan.h"
#include "runtime/system/Files.h"
#include "tests/support/NonEmpty.h"
#include "tests/support/TemporaryTestFolder.h"
#include "tests/unit/samples/PlanResults.h"

#include <map>
#include <regex>

using namespace weft;
using namespace weft::driver;

namespace {

struct Planned {
  decision::Decision selected;
  PlannedKernels kernels;
};

/// The best plan, whole and verified.
Planned planOf(Compilation &compilation) {
  compilation.import();
  decision::Decision selected = compilation.decide(compilation.propose(Phase::import));
  PlannedKernels kernels = valueOrThrow(
      decision::planOf(compilation.planContext(), selected.best(), selected.path(), 1));
  REQUIRE_NOTHROW(verify(kernels.plan, "plan.json"));
  return {.selected = std::move(selected), .kernels = std::move(kernels)};
}

}  // namespace

TEST_CASE("the plan of a training step with its optimizer computes what the graph does") {
  ModelFlags model;
  model.model = "masked-token";
  model.train = true;
  model.optimizer = "adamw";
  model.dtype = GENERATE("f32", "f16");
  model.dims = {"b=2", "j=4", "h=2", "p=4", "i=8", "u=12", "v=16"};
  Compilation compilation(model, {}, {.profile = "none"});
  const auto [selected, planned] = planOf(compilation);
  CHECK(nameOf(planned.plan.dtype) == model.dtype);
  CHECK(std::ranges::count(planned.plan.tensors, "gradient_check", &PlanTensor::logical) ==
        (model.dtype == "f16"));
  size_t masters = 0, updates = 0;
  for (const PlanTensor &tensor : test::nonEmpty(planned.plan.tensors)) {
    masters += !tensor.masterOf.empty();
    if (!tensor.masterOf.empty()) CHECK(tensor.logical == tensor.masterOf + "_master");
    updates += !tensor.nextOf.empty();
    if (!tensor.nextOf.empty()) CHECK(tensor.logical == tensor.nextOf + "_next");
  }
  const size_t kinds = model.dtype == "f16" ? 4 : 3;  // the parameter, its averages, its master
  CHECK(updates > 0);
  CHECK(updates % kinds == 0);
  CHECK(masters == (model.dtype == "f16" ? updates / kinds : 0));
  CHECK(planned.kernels.size() < selected.best().selection.problem().ops.size());
  test::checkResults(compilation, planned, false);
  test::checkResults(compilation, planned, true);
}

namespace {

/// By role the tensor of a plan that has it.
std::map<TrainingRole, const PlanTensor *> rolesOf(const Plan &plan) {
  std::map<TrainingRole, const PlanTensor *> roles;
  for (const PlanTensor &tensor : test::nonEmpty(plan.tensors))
    if (tensor.training != TrainingRole::none)
      CHECK(roles.emplace(tensor.training, &tensor).second);
  return roles;
}

}  // namespace

TEST_CASE("a graph whose tensors are called otherwise trains by the same kernels and roles") {
  ModelFlags model;
  model.model = "masked-token";
  model.dtype = "f16";
  model.dims = {"b=2", "j=4", "h=2", "p=4", "i=8", "u=12", "v=16"};
  Compilation imported(model, {}, {.profile = "none"});
  imported.import();
  std::string text = imported.importedTexts().front().text;
  for (const auto &[name, other] : {std::pair("tokens", "words"),
                                    {"labels", "answers"},
                                    {"weights", "tokens"},  // of another role's usual name
                                    {"loss", "error"}})
    text = std::regex_replace(text, std::regex(std::string("%") + name + "\\b"),
                              std::string("%") + other);
  const test::TemporaryTestFolder folder;
  const std::string file = folder / "renamed.mlir";
  runtime::writeFile(file, text);
  std::vector<Plan> plans;
  for (const bool isRenamed : {false, true}) {
    ModelFlags flags = model;
    if (isRenamed) flags = {.model = file};
    flags.train = true;
    flags.optimizer = "adamw";
    Compilation compilation(flags, {}, {.profile = "none"});
    plans.push_back(planOf(compilation).kernels.plan);
  }
  const auto roles = rolesOf(plans[0]), renamed = rolesOf(plans[1]);
  CHECK(roles.size() == trainingRoleWords.size() - 1);  // every role of one with a master
  REQUIRE(renamed.size() == roles.size());
  for (const auto &[role, tensor] : test::nonEmpty(roles)) {
    INFO(nameOf(role));
    REQUIRE(renamed.contains(role));
    CHECK(renamed.at(role)->role == tensor->role);
    CHECK(renamed.at(role)->extents == tensor->extents);
    CHECK(renamed.at(role)->dtype == tensor->dtype);
  }
  CHECK(renamed.at(TrainingRole::weights)->logical == "tokens");
  CHECK(renamed.at(TrainingRole::loss)->logical == "error");
  CHECK(renamed.at(TrainingRole::lossGradient)->logical == "d_error");
  REQUIRE(plans[0].kernels.size() == plans[1].kernels.size());
  for (size_t kernel = 0; kernel < plans[0].kernels.size(); ++kernel)
    CHECK(plans[0].kernels[kernel].configuration == plans[1].kernels[kernel].configuration);
}

TEST_CASE("gradients of activations are results beside updates, which come last") {
  ModelFlags model;
  model.model = "gpt2";
  model.train = true;
  model.optimizer = "adamw";
  model.gradientsOf = {"wq", "x"};
  model.dims = {"b=2", "j=4", "h=2", "p=4", "i=8", "u=12"};
  Compilation compilation(model, {}, {.profile = "none"});
  const auto [selected, planned] = planOf(compilation);
  std::vector<std::string> results;
  for (const PlanTensor &tensor : planned.plan.tensors)
    if (tensor.role == TensorRole::result) results.push_back(tensor.logical);
  CHECK(std::ranges::count(results, "d_x") == 1);
  CHECK(std::ranges::count(results, "wq_next") == 1);
  test::checkResults(compilation, planned, false);
}

TEST_CASE("one number of a training step says whether its gradients overflow") {
  ModelFlags model;
  model.model = "masked-token";
  model.train = true;
  model.optimizer = "adamw";
  model.dtype = "f16";
  model.dims = {"b=2", "j=4", "h=2", "p=4", "i=8", "u=12", "v=16"};
  Compilation compilation(model, {}, {.profile = "none"});
  compilation.import();
  GraphOp graph = *compilation.graph().getOps<GraphOp>().begin();
  const DescribedOps described = describeGraph(graph);
  const auto nameOf = [&](mlir::Value value) { return test::nameIn(described, value); };
  const auto allFinite = [](const TensorValue &value) {
    return std::ranges::all_of(value.elements, [](double one) { return std::isfinite(one); });
  };
  const auto checkAt = [&](double scale) {
    std::vector<TensorValue> arguments = randomArguments(graph, 5);
    for (mlir::BlockArgument argument : graph.getBody().getArguments()) {
      double &first = arguments[argument.getArgNumber()].elements.front();
      if (nameOf(argument) == "d_loss") first = scale;
      if (nameOf(argument) == "inverse_loss_scale") first = 1 / scale;
    }
    const auto results = interpret(graph, arguments, {.roundToStorage = true, .seed = 5});
    REQUIRE(mlir::succeeded(results));
    bool areNextFinite = true, isFinite = false;
    mlir::Operation *terminator = graph.getBody().front().getTerminator();
    for (size_t n = 0; n < results->size(); ++n) {
      const std::string name = nameOf(terminator->getOperand(unsigned(n)));
      if (name == "loss") CHECK(allFinite((*results)[n]));
      else if (name == "gradient_check") isFinite = allFinite((*results)[n]);
      else areNextFinite &= allFinite((*results)[n]);
    }
    CHECK(isFinite == areNextFinite);
    return isFinite;
  };
  CHECK(checkAt(1));
  CHECK(checkAt(64));
  CHECK_FALSE(checkAt(std::exp2(40)));
}

namespace {

Layout pinOf(const select::Tensor &tensor, const std::string &order) {
  Layout layout;
  for (const char axis : order)
    for (size_t dimension = 0; dimension < tensor.axes.size(); ++dimension)
      if (tensor.axes[dimension].name == std::string(1, axis))
        layout.order.push_back(int(dimension));
  return layout;
}

/// The best plan of all variants, and its variant.
std::pair<size_t, select::SelectionResult> bestOf(const select::VariantSelections &selections) {
  std::pair<size_t, select::SelectionResult> best;
  for (size_t v = 0; v < selections.solved.size(); ++v)
    if (selections.solved[v] &&
        (best.second.steps.empty() || selections.solved[v]->best().seconds < best.second.seconds))
      best = {v, selections.solved[v]->best()};
  return best;
}

}  // namespace

TEST_CASE("a pinned layout never gives a faster plan of fused training than none") {
  Compilation compilation({.model = "paper-attention", .train = true, .dims = {"b=8", "j=512"}}, {},
                          {.profile = "none"});
  compilation.import();
  std::vector<select::VariantProblem> variants;
  for (select::Problem &problem : compilation.problems(compilation.propose(Phase::import)))
    if (problem.name.find("fuse-attention") != std::string::npos)
      variants.push_back({.problem = std::move(problem), .options = {}});
  REQUIRE_FALSE(variants.empty());
  const double free =
      bestOf(select::selectVariants(variants, compilation.costModel())).second.seconds;
  for (select::VariantProblem &variant : variants)
    for (select::Tensor &tensor : variant.problem.tensors)
      if (tensor.name == "d_weighted") tensor.pinned = pinOf(tensor, "bjhw");
  const auto [index, plan] = bestOf(select::selectVariants(variants, compilation.costModel()));
  CHECK(free <= plan.seconds * (1 + 1e-9));
}

TEST_CASE(
    "what a pinned layout leads to is found without searching all variants, and is the plan that "
    "they all together have") {
  Compilation compilation({.model = "paper-encoder", .train = true, .dims = {"b=8", "j=512"}}, {},
                          {});
  compilation.import();
  std::vector<select::VariantProblem> free;
  for (select::Problem &problem : compilation.problems(compilation.propose(Phase::import)))
    free.push_back({.problem = std::move(problem), .options = {}});
  REQUIRE(free.size() > 10);
  const select::VariantSelections unpinned = select::selectVariants(free, compilation.costModel());
  const std::vector<std::pair<std::string, std::string>> pins = {
      {"q", "hbjp"}, {"q", "phbj"}, {"score", "bhjk"}, {"norm1", "jbi"}, {"d_hidden", "ujb"}};
  for (const auto &[name, order] : pins) {
    INFO(name << '=' << order);
    std::vector<select::VariantProblem> pinned = free;
    for (select::VariantProblem &variant : pinned)
      for (select::Tensor &tensor : variant.problem.tensors)
        if (tensor.name == name) tensor.pinned = pinOf(tensor, order);
    const auto [variant, plan] = bestOf(select::selectVariants(pinned, compilation.costModel()));
    for (size_t v = 0; v < pinned.size(); ++v)
      pinned[v].withoutPins =
          unpinned.solved[v]->best().seconds * (1 - unpinned.solved[v]->statistics().mostGain);
    const select::VariantSelections quick = select::selectVariants(pinned, compilation.costModel());
    // No fused attention reads q in this layout: what it costs is more than any variant could save.
    if (order != "phbj") CHECK(std::ranges::count(quick.skipped, true) > 10);
    const auto [quickVariant, quickPlan] = bestOf(quick);
    CHECK(quickVariant == variant);
    CHECK(quickPlan.seconds == Approx(plan.seconds).epsilon(1e-12));
    REQUIRE(quickPlan.steps.size() == plan.steps.size());
    for (size_t step = 0; step < plan.steps.size(); ++step) {
      CHECK(quickPlan.steps[step].candidate == plan.steps[step].candidate);
      CHECK(quickPlan.steps[step].configuration == plan.steps[step].configuration);
    }
  }
}
