// From graphs to candidates: canonical kernels and which ops the fusion rules put together.
#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/account/Operators.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

using namespace weft;
using namespace weft::test;

namespace {

using Names = std::vector<std::string>;

Names candidateNames(const select::Problem &problem, size_t leastOps) {
  std::set<std::string> names;
  for (const select::Candidate &candidate : problem.candidates)
    if (candidate.ops.size() >= leastOps) names.insert(candidate.name);
  return {names.begin(), names.end()};
}

}  // namespace

TEST_CASE("every op of every preset has a canonical separate kernel") {
  for (const models::Preset &known : nonEmpty(models::presets())) {
    INFO(known.name);
    const auto loaded = preset(known.name, {});
    for (mlir::Operation *op : nonEmpty(numberedOps(loaded->graph()))) {
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
  CHECK(kernel.values[1].axes == std::vector<AxisId>{2});
  CHECK(kernel.values[2].name == "skip");
  CHECK(kernel.outputs.size() == 3);  // y, and the statistics that nobody reads
  CHECK(kernel.reducedAxes() == std::vector<AxisId>{2});
  CHECK(kernel.body[1].attributes.at("stream") == Attribute(int64_t(3)));
}

TEST_CASE("the mask of a fold has the elements of its scores") {
  const auto loaded = parse(R"(
!jk = tensor<5x9xf32, #weft.axes<j, k>>
!kw = tensor<9x4xf32, #weft.axes<k, w>>
!jw = tensor<5x4xf32, #weft.axes<j, w>>
weft.graph @g(%x: !jk, %v: !kw, %g: !jk) -> (!jw, !jk) {
  %y = weft.online_softmax_contract "jk,kw->jw" %x, %v {p = 0.5, stream = 2} : !jk, !kw -> !jw
  %d = weft.dropout %g {p = 0.5, stream = 2} : !jk
  weft.return %y, %d : !jw, !jk
})");
  const std::vector<Operator> operators = operatorsOf(describeGraph(loaded->graph()).flow);
  REQUIRE(operators.size() == 2);
  CHECK(operators[0].elementsRead == 45 + 36);
  CHECK(operators[0].elementsWritten == 20 + 45);
  CHECK(operators[1].elementsRead == 45 + 45);
  CHECK(operators[1].elementsWritten == 45);
  const Kernel kernel = toKernel({numberedOps(loaded->graph())[0]}, "");
  CHECK(dropoutOf(kernel.body[0]) == Dropout{.p = 0.5, .stream = 2});
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
  CHECK(candidateNames(problem, 2) == Names{"bias_dropout_residual_layer_norm", "bias_relu_dropout",
                                            "bias_x3", "softmax_dropout"});
  int maximal = 0;
  for (const select::Candidate &candidate : problem.candidates) maximal += candidate.ops.size() > 1;
  CHECK(maximal == 5);
}

TEST_CASE("default rules add every connected subset of a maximal set") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  const select::Problem problem =
      toProblem(loaded->graph(), {}, proposeFusions(loaded->graph(), FuseOptions{}));
  const Names names = candidateNames(problem, 2);
  for (const char *wanted :
       {"bias_dropout", "dropout_residual", "residual_layer_norm", "bias_dropout_residual",
        "dropout_residual_layer_norm", "bias_relu", "relu_dropout", "bias_x2", "bias_x3"})
    CHECK(std::count(names.begin(), names.end(), wanted) == 1);
  for (const select::Candidate &candidate : nonEmpty(problem.candidates)) {
    CHECK(std::is_sorted(candidate.ops.begin(), candidate.ops.end()));
    CHECK(candidate.inputs.size() == candidate.kernel.inputs.size());
    CHECK(candidate.outputs.size() == candidate.kernel.outputs.size());
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
