// The graph passes on preset-like graphs: canonical kernels, fusion candidates and records by code, variants that compute
// the same, plans written into graphs.
#include "ir/Interpreter.h"
#include "ir/Weft.h"
#include "kernel/Error.h"
#include "models/Models.h"
#include "passes/ConfigurationAttributes.h"
#include "passes/Describe.h"
#include "passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <catch2/catch.hpp>

using namespace weft;

namespace {

using Dims = std::map<std::string, int64_t>;
using Names = std::vector<std::string>;

const Dims smallEncoder{{"b", 2}, {"j", 8}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}};

const Dims smallLlama{{"b", 1}, {"j", 6}, {"h", 4}, {"g", 2}, {"p", 4}, {"i", 16}, {"u", 12}};

struct Loaded {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  GraphOp graph() { return *mlir::ModuleOp(*module).getOps<GraphOp>().begin(); }
};

std::unique_ptr<Loaded> preset(const std::string &name, const Dims &dims) {
  auto loaded = std::make_unique<Loaded>();
  models::Request request;
  request.model = name;
  request.dims = dims;
  request.dtype = DType::f32;
  loaded->module = models::build(request, loaded->context).module;
  return loaded;
}

std::unique_ptr<Loaded> parse(const std::string &text) {
  auto loaded = std::make_unique<Loaded>();
  loaded->context.loadDialect<WeftDialect>();
  loaded->module = mlir::parseSourceString<mlir::ModuleOp>(text, &loaded->context);
  REQUIRE(loaded->module);
  return loaded;
}

GraphOp graphOf(mlir::ModuleOp module) { return *module.getOps<GraphOp>().begin(); }

/// Both graphs on the same random arguments, in f64. NaN never passes.
void requireSame(GraphOp a, GraphOp b, uint64_t seed = 7) {
  REQUIRE(mlir::succeeded(mlir::verify(b)));
  const std::vector<TensorValue> arguments = randomArguments(a, seed);
  const auto left = interpret(a, arguments, {}), right = interpret(b, arguments, {});
  REQUIRE(mlir::succeeded(left));
  REQUIRE(mlir::succeeded(right));
  REQUIRE(left->size() == right->size());
  for (size_t index = 0; index < left->size(); ++index) {
    REQUIRE_FALSE((*left)[index].elements.empty());
    CHECK(distance((*right)[index], (*left)[index], 1e-9, 1e-9) <= 1.0);
  }
}

Names candidateNames(const select::Problem &problem, size_t leastOps) {
  std::set<std::string> names;
  for (const select::Candidate &candidate : problem.candidates)
    if (candidate.ops.size() >= leastOps)
      names.insert(candidate.name);
  return {names.begin(), names.end()};
}

const FusionRecord *recordOf(const FusionResult &result, const std::vector<int> &ops) {
  for (const FusionRecord &record : result.records)
    if (record.ops == ops)
      return &record;
  return nullptr;
}

std::string verdictOf(const std::string &body, const std::vector<int> &ops, FuseOptions options = {}) {
  const auto loaded = parse(body);
  const FusionResult result = proposeFusions(loaded->graph(), options);
  const FusionRecord *record = recordOf(result, ops);
  return record ? describe(*record) : "no record";
}

const std::string types = R"(
!bji = tensor<2x3x8xf32, #weft.axes<b, j, i>>
!i = tensor<8xf32, #weft.axes<i>>
!j = tensor<3xf32, #weft.axes<j>>
!bj = tensor<2x3xf32, #weft.axes<b, j>>
)";

}  // namespace

TEST_CASE("every op of every preset has a canonical kernel of its own") {
  for (const models::Preset &known : models::presets()) {
    INFO(known.name);
    const auto loaded = preset(known.name, {});
    for (mlir::Operation *op : numberedOps(loaded->graph())) {
      const Kernel kernel = toKernel({op}, "");
      INFO(kernel.name);
      CHECK(kernel.body.size() == 1);
      CHECK(kernel.outputs.size() >= 1);
      CHECK(kernel.flop() == mlir::cast<WeftOp>(op).flop());
    }
  }
}

TEST_CASE("a fused kernel identifies axes through the dataflow") {
  const auto loaded = parse(types + R"(
weft.graph @g(%x: !bji, %skip: !bji, %beta: !i, %gamma: !i, %shift: !i) -> !bji {
  %biased = weft.bias %x, %beta along (i) : !bji, !i
  %kept = weft.dropout %biased {p = 0.1, stream = 3} : !bji
  %sum = weft.residual %kept, %skip : !bji
  %y, %mean, %rstd = weft.layer_norm %sum, %gamma, %shift over i : !bji, !i, !i -> !bji, !bj, !bj
  weft.return %y : !bji
})");
  const Kernel kernel = toKernel(numberedOps(loaded->graph()), "");
  CHECK(kernel.name == "bias_dropout_residual_layer_norm");
  REQUIRE(kernel.axes == std::vector<Axis>{{"b", 2}, {"j", 3}, {"i", 8}});
  CHECK(kernel.inputs.size() == 5);
  CHECK(kernel.values[0].name == "x");
  CHECK(kernel.values[1].name == "beta");
  CHECK(kernel.values[1].axes == std::vector<int>{2});
  CHECK(kernel.values[2].name == "skip");
  CHECK(kernel.outputs.size() == 3);  // y, and the statistics that nobody reads
  CHECK(kernel.reducedAxes() == std::vector<int>{2});
  CHECK(kernel.body[1].attributes.at("stream") == Attribute(int64_t(3)));
}

TEST_CASE("one tensor read under two index maps is two inputs") {
  const auto loaded = parse(types + R"(
!bjk = tensor<2x3x3xf32, #weft.axes<b, j, k>>
weft.graph @g(%x: !bji) -> !bjk {
  %gram = weft.contract "bji,bki->bjk" %x, %x : !bji -> !bjk
  weft.return %gram : !bjk
})");
  const Kernel kernel = toKernel(numberedOps(loaded->graph()), "");
  CHECK(kernel.name == "gram_contraction");
  REQUIRE(kernel.inputs.size() == 2);
  CHECK(kernel.values[0].axes[1] != kernel.values[1].axes[1]);
  CHECK(kernel.values[2].axes.size() == 3);
}

TEST_CASE("rules paper find the fused kernels of the paper's forward encoder") {
  const auto loaded = preset("paper-encoder", {});
  FuseOptions options;
  options.rules = FuseRules::paper;
  const FusionResult fusions = proposeFusions(loaded->graph(), options);
  const select::Problem problem = toProblem(loaded->graph(), {}, fusions);
  // AIB, BDRLN (twice), BRD, SM
  CHECK(candidateNames(problem, 2) ==
        Names{"bias_dropout_residual_layer_norm", "bias_relu_dropout", "bias_x3", "softmax_dropout"});
  int maximal = 0;
  for (const select::Candidate &candidate : problem.candidates)
    maximal += candidate.ops.size() > 1;
  CHECK(maximal == 5);
}

TEST_CASE("default rules add every connected subset of a maximal set") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  const select::Problem problem = toProblem(loaded->graph(), {}, proposeFusions(loaded->graph(), FuseOptions{}));
  const Names names = candidateNames(problem, 2);
  for (const char *wanted : {"bias_dropout", "dropout_residual", "residual_layer_norm", "bias_dropout_residual",
                             "dropout_residual_layer_norm", "bias_relu", "relu_dropout", "bias_x2", "bias_x3"})
    CHECK(std::count(names.begin(), names.end(), wanted) == 1);
  for (const select::Candidate &candidate : problem.candidates) {
    CHECK(std::is_sorted(candidate.ops.begin(), candidate.ops.end()));
    CHECK(candidate.inputs.size() == candidate.kernel.inputs.size());
    CHECK(candidate.outputs.size() == candidate.kernel.outputs.size());
  }
}

TEST_CASE("bytes saved: intermediates vanish, shared inputs are read once") {
  const auto loaded = parse(types + R"(
weft.graph @g(%x: !bji) -> (!bji, !bji) {
  %a = weft.relu %x : !bji
  %b = weft.tanh %a : !bji
  %c = weft.sigmoid %x : !bji
  weft.return %b, %c : !bji, !bji
})");
  const FusionResult result = proposeFusions(loaded->graph(), FuseOptions{});
  const int64_t tensor = 2 * 3 * 8 * 4;
  REQUIRE(recordOf(result, {0, 1}));
  CHECK(recordOf(result, {0, 1})->savedBytes == 2 * tensor);
  CHECK(recordOf(result, {0, 1})->pattern == "producer-consumer");
  CHECK(recordOf(result, {0, 2})->savedBytes == tensor);
  CHECK(recordOf(result, {0, 2})->pattern == "shared-input");
  CHECK(recordOf(result, {0, 1, 2})->savedBytes == 3 * tensor);
}

TEST_CASE("every rejection has its code and names what blocks") {
  const std::string reductions = types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %a = weft.softmax %x over i : !bji
  %c = weft.softmax %a over j : !bji
  weft.return %c : !bji
})";
  CHECK(verdictOf(reductions, {0, 1}) == "F012 reduction-axis-mismatch (i against j)");

  const std::string spaces = types + R"(
weft.graph @g(%x: !bji, %s: !bj) -> !bji {
  %r = weft.relu %s : !bj
  %y = weft.mul %x, %r along (b, j) : !bji, !bj
  weft.return %y : !bji
})";
  CHECK(verdictOf(spaces, {0, 1}) == "F001 iteration-space-mismatch (b,j against b,j,i)");

  const std::string two = types + R"(
weft.graph @g(%x: !bji) -> !j {
  %r = weft.relu %x : !bji
  %s = weft.reduce sum %r over b, i : !bji -> !j
  weft.return %s : !j
})";
  CHECK(verdictOf(two, {0, 1}) == "F041 second-reduction-axis (s)");

  const std::string product = types + R"(
!ui = tensor<5x8xf32, #weft.axes<u, i>>
!bju = tensor<2x3x5xf32, #weft.axes<b, j, u>>
weft.graph @g(%x: !bji, %w: !ui {weft.parameter}) -> !bju {
  %p = weft.contract "bji,ui->bju" %x, %w : !bji, !ui -> !bju
  %r = weft.relu %p : !bju
  weft.return %r : !bju
})";
  CHECK(verdictOf(product, {0, 1}) == "F021 contraction-epilogue-off (p)");
  FuseOptions paper;
  paper.rules = FuseRules::paper;
  CHECK(verdictOf(product, {0, 1}, paper) == "F020 contraction (p)");

  const std::string around = types + R"(
!ii = tensor<8x8xf32, #weft.axes<u, i>>
weft.graph @g(%x: !bji, %w: !ii {weft.parameter}) -> !bji {
  %r = weft.relu %x : !bji
  %p = weft.contract "bji,ui->bju" %r, %w : !bji, !ii -> !bji
  %y = weft.residual %p, %r : !bji
  weft.return %y : !bji
})";
  CHECK(verdictOf(around, {0, 2}) == "F030 would-create-cycle (p)");

  const std::string rotary = types + R"(
weft.graph @g(%x: !bji, %beta: !i) -> !bji {
  %b = weft.bias %x, %beta along (i) : !bji, !i
  %r = weft.rotary %b {position = j, dim = i} : !bji
  %y = weft.relu %r : !bji
  weft.return %y : !bji
})";
  CHECK(verdictOf(rotary, {0, 1}) == "F040 partner-access (b)");
  CHECK(verdictOf(rotary, {1, 2}) == "accepted");

  const std::string chain = types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %a = weft.relu %x : !bji
  %b = weft.tanh %a : !bji
  %c = weft.exp %b : !bji
  weft.return %c : !bji
})";
  FuseOptions apart;
  apart.forbidden = {{0, 1}};
  CHECK(verdictOf(chain, {0, 1}, apart) == "F050 forbidden-by-option (0,1)");
  CHECK(verdictOf(chain, {1, 2}, apart) == "accepted");
  FuseOptions none;
  none.rules = FuseRules::none;
  CHECK(verdictOf(chain, {0, 1}, none) == "F051 fusion-off");
  FuseOptions small;
  small.maxOps = 2;
  CHECK(verdictOf(chain, {0, 1, 2}, small) == "F070 candidate-bound (2 ops)");

  const std::string movement = types + R"(
weft.graph @g(%x: !bji) -> tensor<2x3x4xf32, #weft.axes<b, j, i>> {
  %a = weft.relu %x : !bji
  %s = weft.slice %a {axis = i, start = 0, size = 4} : !bji -> tensor<2x3x4xf32, #weft.axes<b, j, i>>
  weft.return %s : tensor<2x3x4xf32, #weft.axes<b, j, i>>
})";
  CHECK(verdictOf(movement, {0, 1}) == "F060 movement-op (s)");

  const std::string twice = types + R"(
!bjk = tensor<2x3x3xf32, #weft.axes<b, j, k>>
weft.graph @g(%x: !bjk) -> !bjk {
  %r = weft.relu %x : !bjk
  %y = weft.add %r, %r along (b, k, j) : !bjk, !bjk
  weft.return %y : !bjk
})";
  CHECK(verdictOf(twice, {0, 1}) == "F002 axis-identified-twice (tensor 'r' is read under two index maps inside one kernel)");

  const std::string subVectors = types + R"(
!bjn = tensor<2x3x2xf32, #weft.axes<b, j, n>>
weft.graph @g(%x: !bji) -> (!bji, !bjn, !bjn) {
  %e = weft.exp %x : !bji
  %y, %m, %d = weft.local_softmax %e over i {tile = 4} : !bji -> !bji, !bjn, !bjn
  %z = weft.softmax %y over i : !bji
  weft.return %z, %m, %d : !bji, !bjn, !bjn
})";
  CHECK(verdictOf(subVectors, {0, 1}) == "accepted");
  CHECK(verdictOf(subVectors, {1, 2}).starts_with("F042 sub-vector-access"));

  const std::string region = types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %r = weft.kernel @fixed (%a = %x : !bji) -> (!bji) {
    %s = weft.relu %a : !bji
    weft.yield %s : !bji
  }
  %y = weft.tanh %r : !bji
  weft.return %y : !bji
})";
  CHECK(verdictOf(region, {0, 1}).starts_with("F061 already-fused"));

  const std::string independent = types + R"(
weft.graph @g(%x: !bji, %y: tensor<2x3x9xf32, #weft.axes<b, j, u>>) -> (!bji, tensor<2x3x9xf32, #weft.axes<b, j, u>>) {
  %a = weft.relu %x : !bji
  %c = weft.relu %y : tensor<2x3x9xf32, #weft.axes<b, j, u>>
  weft.return %a, %c : !bji, tensor<2x3x9xf32, #weft.axes<b, j, u>>
})";
  CHECK(verdictOf(independent, {0, 1}) == "F010 extent-mismatch (i=8 against u=9)");
}

TEST_CASE("codes are unique and ordered") {
  std::set<std::string_view> codes;
  for (const ReasonCode &code : reasonCodes) {
    CHECK(codes.insert(code.code).second);
    CHECK_FALSE(code.meaning.empty());
  }
}

TEST_CASE("rules none with a forced pair leave exactly the forced fusions") {
  const auto loaded = parse(types + R"(
weft.graph @g(%x: !bji) -> !bji {
  %a = weft.relu %x : !bji
  %b = weft.tanh %a : !bji
  %c = weft.exp %b : !bji
  weft.return %c : !bji
})");
  FuseOptions options;
  options.rules = FuseRules::none;
  options.forced = {{0, 2}};
  const FusionResult result = proposeFusions(loaded->graph(), options);
  REQUIRE(result.candidates.size() == 4);
  CHECK(result.candidates.back().ops == std::vector<int>{0, 1, 2});
}

TEST_CASE("variants compute what the graph computes") {
  const std::map<std::string, Dims> sizes{
      {"paper-encoder", smallEncoder},
      {"gpt2", {{"b", 1}, {"j", 6}, {"h", 2}, {"p", 4}, {"i", 8}, {"u", 12}}},
      {"llama-3-8b", smallLlama}};
  const std::map<std::string, size_t> expected{{"paper-encoder", 8}, {"gpt2", 8}, {"llama-3-8b", 16}};
  for (const auto &[name, dims] : sizes) {
    INFO(name);
    const auto loaded = preset(name, dims);
    VariantOptions options;
    options.subVector = 4;  // of 6: the last sub-vector is short
    const std::vector<Variant> variants = proposeVariants(*loaded->module, options);
    CHECK(variants.size() == expected.at(name));
    CHECK(variants.front().rewrites.empty());
    std::set<std::vector<std::string>> distinct;
    for (const Variant &variant : variants) {
      CHECK(distinct.insert(variant.rewrites).second);
      requireSame(loaded->graph(), graphOf(*variant.module));
    }
  }
}

TEST_CASE("stacking options choose how many projections share a product") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  const auto contractions = [](mlir::ModuleOp module) {
    const auto ops = graphOf(module).getBody().front().getOps<ContractOp>();
    return std::distance(ops.begin(), ops.end());
  };
  const auto before = contractions(*loaded->module);
  const auto with = [&](const std::string &stacking) {
    VariantOptions options;
    options.stacking = stacking;
    options.attention = "unfused";
    return proposeVariants(*loaded->module, options);
  };
  CHECK(with("separate").size() == 1);
  REQUIRE(with("two").size() == 2);
  CHECK(contractions(*with("two").front().module) == before - 1);
  REQUIRE(with("three").size() == 1);
  CHECK(contractions(*with("three").front().module) == before - 2);
  CHECK(with("three").front().rewrites.size() == 1);
  CHECK_THROWS_AS(with("four"), Error);
}

TEST_CASE("packed parameters are parameters, and biases are added before slicing") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  VariantOptions options;
  options.stacking = "three";
  options.attention = "unfused";
  const std::vector<Variant> variants = proposeVariants(*loaded->module, options);
  GraphOp graph = graphOf(*variants.front().module);
  const select::Problem problem = toProblem(graph, variants.front().rewrites, proposeFusions(graph, FuseOptions{}));
  int packed = 0;
  for (const select::Candidate &candidate : problem.candidates)
    if (candidate.proposedBy == "pack: at load") {
      ++packed;
      CHECK(candidate.kernel.operatorClass() == OperatorClass::movement);
      CHECK(problem.tensors[candidate.outputs.front()].isParameter);
    }
  CHECK(packed == 2);  // weights and biases
  const auto biases = graph.getBody().front().getOps<BiasOp>();
  const auto original = loaded->graph().getBody().front().getOps<BiasOp>();
  CHECK(std::distance(biases.begin(), biases.end()) == std::distance(original.begin(), original.end()) - 2);
}

namespace {

/// Covers all ops, the largest candidates first, everything row-major: a legal plan, if not a good one.
select::Plan greedyPlan(const select::Problem &problem) {
  std::vector<int> order(problem.candidates.size());
  for (size_t index = 0; index < order.size(); ++index)
    order[index] = static_cast<int>(index);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return problem.candidates[a].ops.size() > problem.candidates[b].ops.size();
  });
  std::set<int> done, live;
  for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor)
    if (problem.tensors[tensor].isArgument)
      live.insert(static_cast<int>(tensor));
  select::Plan plan;
  const auto ready = [&](const select::Candidate &candidate) {
    return std::all_of(candidate.inputs.begin(), candidate.inputs.end(), [&](int t) { return live.count(t); }) &&
           std::none_of(candidate.ops.begin(), candidate.ops.end(), [&](int op) { return done.count(op); });
  };
  while (done.size() < problem.ops.size()) {
    const auto next = std::find_if(order.begin(), order.end(), [&](int c) { return ready(problem.candidates[c]); });
    REQUIRE(next != order.end());
    const select::Candidate &candidate = problem.candidates[*next];
    select::Step step;
    step.candidate = *next;
    for (int tensor : candidate.inputs)
      step.configuration.inputs.push_back(rowMajor(problem.tensors[tensor].axes.size()));
    for (int tensor : candidate.outputs)
      step.configuration.outputs.push_back(rowMajor(problem.tensors[tensor].axes.size()));
    const int last = static_cast<int>(candidate.kernel.axes.size()) - 1;
    if (candidate.kernel.operatorClass() == OperatorClass::contraction)
      step.configuration.knobs = ContractionKnobs{};
    else
      step.configuration.knobs = LoopKnobs{.vectorAxis = last, .vectorWidth = 2, .laneAxis = last};
    done.insert(candidate.ops.begin(), candidate.ops.end());
    live.insert(candidate.outputs.begin(), candidate.outputs.end());
    plan.steps.push_back(step);
  }
  return plan;
}

std::string print(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

}  // namespace

TEST_CASE("a plan written into the graph computes the same, reads back, and keeps its kernels") {
  for (const char *name : {"paper-encoder", "llama-3-8b"}) {
    INFO(name);
    Dims dims = smallEncoder;
    if (std::string(name) == "llama-3-8b")
      dims = smallLlama;
    const auto loaded = preset(name, dims);
    const select::Problem problem = toProblem(loaded->graph(), {}, proposeFusions(loaded->graph(), FuseOptions{}));
    select::Plan plan = greedyPlan(problem);
    const int result = problem.candidates[plan.steps.back().candidate].outputs.front();
    select::Step transpose;
    transpose.tensor = result;
    transpose.configuration = {.inputs = {rowMajor(3)}, .outputs = {Layout{.order = {2, 0, 1}}}, .knobs = TransposeKnobs{}};
    plan.steps.push_back(transpose);

    const auto module = materialize(*loaded->module, problem, plan);
    GraphOp graph = graphOf(*module);
    requireSame(loaded->graph(), graph);
    const std::vector<mlir::Operation *> kernels = numberedOps(graph);
    REQUIRE(kernels.size() == plan.steps.size());
    for (size_t index = 0; index < kernels.size(); ++index) {
      auto op = mlir::cast<KernelOp>(kernels[index]);
      INFO(op.getName().str());
      CHECK(configurationOf(op) == plan.steps[index].configuration);
      if (plan.steps[index].candidate < 0)
        continue;
      const Kernel &kernel = problem.candidates[plan.steps[index].candidate].kernel;
      CHECK(canonicalText(toKernel({op}, "")) == canonicalText(kernel));
      CHECK(toKernel({op}, "").axes == kernel.axes);
    }
    const std::string text = print(*module);
    const auto again = mlir::parseSourceString<mlir::ModuleOp>(text, &loaded->context);
    REQUIRE(again);
    CHECK(print(*again) == text);
    requireSame(loaded->graph(), graphOf(*again));
  }
}
