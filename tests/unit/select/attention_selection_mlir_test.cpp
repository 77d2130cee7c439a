// Selection of graphs with an op that has no kernel by itself: the fused attention covers it, or
// the variant has no plan, and the error says why no candidate holds the op.
#include "kernel/Error.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "passes/configure/CostModel.h"
#include "passes/decide/Decide.h"
#include "passes/select/Selection.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/AttentionFamily.h"
#include "tests/unit/samples/SampleGraphs.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::Loaded;
using weft::test::nonEmpty;
using weft::test::parse;
using namespace weft::samples;

namespace {

const FamilyRegistration registered(sampleAttentionFamily),
    registeredBackward(sampleAttentionBackwardFamily);

const std::string types = R"(
!q = tensor<2x4x64x16xf16, #weft.axes<b, h, j, p>>
!k = tensor<2x4x96x16xf16, #weft.axes<b, h, k, p>>
!v = tensor<2x4x96x16xf16, #weft.axes<b, h, k, w>>
!s = tensor<2x4x64x96xf16, #weft.axes<b, h, j, k>>
!y = tensor<2x4x64x16xf16, #weft.axes<b, h, j, w>>
!l = tensor<2x4x64xf32, #weft.axes<b, h, j>>
)";

/// Queries and output go through further kernels. `returned`: beside the result.
std::unique_ptr<Loaded> attention(const std::string &returned = "", const std::string &more = "") {
  const std::string type = returned.empty() ? "!y" : "(!y, !s)",
                    values = returned.empty() ? "%y : !y" : "%y, " + returned + " : !y, !s";
  return parse(types + "weft.graph @g(%x: !q, %k: !k, %v: !v) -> " + type + R"( {
  %q = weft.gelu %x : !q
  %scores = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.25} : !q, !k -> !s
  %masked = weft.mask causal %scores {query = j, key = k} : !s
  %capped = weft.tanh %masked : !s
)" + more + R"(
  %context = weft.online_softmax_contract "bhjk,bhkw->bhjw" %capped, %v : !s, !v -> !y
  %y = weft.relu %context : !y
  weft.return )" +
               values + "\n}");
}

const Device &device() {
  // Without the families that do take an attention.
  static const Device h200 = [] {
    Device device = findDevice("h200");
    for (const char *name :
         {"attention-sm80", "attention-sm90", "attention-backward-sm80", "attention-backward-sm90"})
      device.familiesTakenAway.insert(familyNamed(name));
    return device;
  }();
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

select::Problem problemOf(GraphOp graph, const FuseOptions &options = fuseOptions()) {
  return toProblem(graph, {}, proposeFusions(graph, options));
}

const CostModel &model() {
  static const std::unique_ptr<CostModel> analytic = analyticCostModel(device());
  return *analytic;
}

std::string errorOf(const select::Problem &problem) {
  try {
    select::select(problem, model(), {});
  } catch (const Error &error) {
    CHECK(error.kind == ErrorKind::unsupported);
    return error.what();
  }
  return "a plan";
}

/// Causal, with dropout, in f16.
std::unique_ptr<Loaded> trainedAttention() {
  auto loaded = parse(types + R"(
weft.graph @g(%q: !q, %k: !k, %v: !v) -> !y {
  %scores = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.25} : !q, !k -> !s
  %masked = weft.mask causal %scores {query = j, key = k} : !s
  %prob = weft.softmax %masked over k : !s
  %kept = weft.dropout %prob {p = 0.25, stream = 1} : !s
  %y = weft.contract "bhjk,bhkw->bhjw" %kept, %v : !s, !v -> !y
  weft.return %y : !y
})");
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  return loaded;
}

/// The fused variant of a trained graph.
Variant fusedVariant(Loaded &loaded) {
  std::vector<Variant> variants =
      proposeVariants(*loaded.module, {.attention = AttentionChoice::fused,
                                       .stacking = StackingChoice::separate,
                                       .canFuseAttention = true});
  REQUIRE(variants.size() == 1);
  return std::move(variants.front());
}

/// Switches the sample family off as long as it lives.
struct WithoutFamily {
  WithoutFamily() { sample_attention::setting().isOffered = false; }
  ~WithoutFamily() { sample_attention::setting().isOffered = true; }
};

std::vector<std::string> kernelsOf(const select::Selection &selection) {
  std::vector<std::string> names;
  for (const select::Step &step : selection.best().steps)
    names.push_back(step.candidate < 0
                        ? "transpose"
                        : selection.problem().candidates[size_t(step.candidate)].name);
  return names;
}

}  // namespace

TEST_CASE("a family that takes the attention covers the op: one kernel, and no score is stored") {
  const auto loaded = attention();
  const select::Problem problem = problemOf(loaded->graph());
  const select::Selection selection = select::select(problem, model(), {});
  CHECK(kernelsOf(selection) == std::vector<std::string>{"gelu", "attention_mask_tanh", "relu"});
  const select::Step &step = selection.best().steps[1];
  CHECK(step.configuration.knobs.is<SampleAttentionKnobs>());
  CHECK(selection.statistics().isProven);
  CHECK(selection.best().lowerBound <= selection.best().seconds);
  CHECK(selection.best().lowerBound > 0);
  for (const select::SelectionResult &plan : nonEmpty(selection.kBest(8)))
    CHECK(std::ranges::count(plan.steps, step.candidate, &select::Step::candidate) == 1);
  // The op could not be split from its scores.
  CHECK_FALSE(selection.whatIfFused(1, 4, false));
  CHECK(selection.whatIfFused(1, 4, true) == 0.0);
}

TEST_CASE("an expensive attention is still the only way") {
  sample_attention::setting().seconds = 1;
  const auto loaded = attention();
  const select::Selection selection = select::select(problemOf(loaded->graph()), model(), {});
  sample_attention::setting().seconds = 1e-9;
  CHECK(selection.best().seconds > 1);
  CHECK(kernelsOf(selection) == std::vector<std::string>{"gelu", "attention_mask_tanh", "relu"});
}

TEST_CASE("two results: the logarithms of sums are stored beside the output") {
  const auto loaded = parse(types + R"(
weft.graph @g(%q: !q, %k: !k, %v: !v) -> (!y, !l) {
  %scores = weft.contract "bhjp,bhkp->bhjk" %q, %k : !q, !k -> !s
  %y, %sums = weft.online_softmax_contract "bhjk,bhkw->bhjw" %scores, %v : !s, !v -> !y, !l
  weft.return %y, %sums : !y, !l
})");
  const select::Selection selection = select::select(problemOf(loaded->graph()), model(), {});
  REQUIRE(kernelsOf(selection) == std::vector<std::string>{"attention"});
  const Kernel &kernel =
      selection.problem().candidates[size_t(selection.best().steps[0].candidate)].kernel;
  CHECK(attentionRegion(kernel).value().logSums == kernel.outputs.at(1));
}

TEST_CASE("without a family the error names the op, each family's reason, and the record") {
  const WithoutFamily without;
  const auto loaded = attention();
  const std::string error = errorOf(problemOf(loaded->graph()));
  CHECK_THAT(error, Catch::StartsWith("op 4 'context = online_softmax_contract capped, v' of "));
  CHECK_THAT(error, Catch::Contains("; not fused: F028 attention-off (") &&
                        Catch::Contains("sample-attention: it is switched off)"));
  CHECK_THAT(error, Catch::Contains("loop: 'online_softmax_contract' is a contraction"));
  CHECK_THAT(error, Catch::Contains("gemm-sm90: "));
  CHECK_THAT(error, !Catch::Contains("F027"));
}

TEST_CASE("scores that are read elsewhere: no candidate, and the error has the record") {
  for (const char *read : {"scores", "masked", "capped"}) {
    const auto loaded = attention(std::string("%") + read);
    const select::Problem problem = problemOf(loaded->graph());
    for (const select::Candidate &candidate : nonEmpty(problem.candidates))
      CHECK_THAT(candidate.name, !Catch::StartsWith("attention"));
    CHECK_THAT(errorOf(problem), Catch::Contains(fmt::format("; not fused: F027 attention-region "
                                                             "('{}' is a result of the graph)",
                                                             read)));
  }
}

TEST_CASE("--no-fuse and rules leave the op without a kernel, and say so") {
  const auto loaded = attention();
  FuseOptions apart = fuseOptions();
  apart.forbidden = {{1, 4}};
  CHECK_THAT(errorOf(problemOf(loaded->graph(), apart)),
             Catch::Contains("; not fused: F050 forbidden-by-option (1,4)"));
  FuseOptions paper = fuseOptions();
  paper.rules = FuseRules::paper;
  CHECK_THAT(errorOf(problemOf(loaded->graph(), paper)),
             Catch::Contains("; not fused: F020 contraction (context)"));
  select::Options excluded;
  excluded.forbidFused = {{1, 4}};
  CHECK_THROWS_WITH(select::select(problemOf(loaded->graph()), model(), excluded),
                    Catch::Contains("'attention_mask_tanh' is excluded by --fuse or --no-fuse"));
}

TEST_CASE("a variant whose op has no kernel is dropped with the reason, and another is chosen") {
  const WithoutFamily without;
  const auto fused = attention();
  const auto unfused = parse(types + R"(
weft.graph @g(%x: !q, %k: !k, %v: !v) -> !y {
  %q = weft.gelu %x : !q
  %scores = weft.contract "bhjp,bhkp->bhjk" %q, %k : !q, !k -> !s
  %prob = weft.softmax %scores over k : !s
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !s, !v -> !y
  weft.return %y : !y
})");
  decision::Problem problem;
  for (const auto &[name, loaded] : {std::pair("fused", &fused), std::pair("unfused", &unfused)}) {
    decision::Variant variant{.problem = problemOf((*loaded)->graph())};
    variant.problem.name = name;
    problem.variants.push_back(std::move(variant));
  }
  problem.context.prices = &model();
  problem.context.model = "sample";
  const Expected<decision::Decision> decision = decision::decide(problem, {});
  REQUIRE(decision);
  CHECK(decision->best().name == "unfused");
  REQUIRE(decision->dropped.size() == 1);
  CHECK(decision->dropped[0].name == "fused");
  CHECK_THAT(decision->dropped[0].reason, Catch::Contains("F028 attention-off"));
}

TEST_CASE("a trained attention is one kernel forward and one backward, with the row sums between") {
  const auto loaded = trainedAttention();
  const Variant variant = fusedVariant(*loaded);
  const select::Problem problem = problemOf(test::graphOf(*variant.module));
  const select::Selection selection = select::select(problem, model(), {});
  CHECK(kernelsOf(selection) ==
        std::vector<std::string>{"attention_mask", "cast_mul_reduce", "attention_backward_mask"});
  CHECK(selection.statistics().isProven);
  const select::Step &last = selection.best().steps.back();
  CHECK(last.configuration.knobs.is<SampleAttentionBackwardKnobs>());
  const Kernel &kernel = problem.candidates[size_t(last.candidate)].kernel;
  CHECK(attentionBackwardRegion(kernel).value().hasDropout);
  CHECK(kernel.outputs.size() == 3);
  const auto module = materialize(*variant.module, problem, selection.best());
  test::requireSame(loaded->graph(), test::graphOf(*module));
}

TEST_CASE(
    "biases with gradients: a backward pass in one, whose scores' gradient they are summed from") {
  // Dense, and broadcast along the batch; what is returned as it is, and what is summed.
  for (const bool isBroadcast : {false, true}) {
    auto loaded = parse(types + fmt::format(R"(
!bias = tensor<{}>
weft.graph @g(%q: !q, %k: !k, %v: !v, %bias: !bias) -> !y {{
  %scores = weft.contract "bhjp,bhkp->bhjk" %q, %k {{scale = 0.25}} : !q, !k -> !s
  %biased = weft.add %scores, %bias along ({}) : !s, !bias -> !s
  %masked = weft.mask causal %biased {{query = j, key = k}} : !s
  %prob = weft.softmax %masked over k : !s
  %y = weft.contract "bhjk,bhkw->bhjw" %prob, %v : !s, !v -> !y
  weft.return %y : !y
}})",
                                            isBroadcast ? "4x64x96xf16, #weft.axes<h, j, k>"
                                                        : "2x4x64x96xf16, #weft.axes<b, h, j, k>",
                                            isBroadcast ? "h, j, k" : "b, h, j, k"));
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    const Variant variant = fusedVariant(*loaded);
    const select::Problem problem = problemOf(test::graphOf(*variant.module));
    const select::Selection selection = select::select(problem, model(), {});
    const auto steps = selection.best().steps;
    const auto backward = std::ranges::find_if(steps, [](const select::Step &step) {
      return step.candidate >= 0 && step.configuration.knobs.is<SampleAttentionBackwardKnobs>();
    });
    REQUIRE(backward != steps.end());
    const Kernel &kernel = problem.candidates[size_t(backward->candidate)].kernel;
    CHECK(attentionBackwardRegion(kernel).value().storedScores >= 0);
    CHECK(std::ranges::count(kernelsOf(selection), "reduce") == int(isBroadcast));
    const auto module = materialize(*variant.module, problem, selection.best());
    test::requireSame(loaded->graph(), test::graphOf(*module));
  }
}

TEST_CASE("without a family of backward passes forward is fused all the same") {
  sample_attention::setting().isBackwardOffered = false;
  const auto loaded = trainedAttention();
  const Variant variant = fusedVariant(*loaded);
  const FusionResult fusions = proposeFusions(test::graphOf(*variant.module), fuseOptions());
  const select::Problem problem = toProblem(test::graphOf(*variant.module), {}, fusions);
  const select::Selection selection = select::select(problem, model(), {});
  sample_attention::setting().isBackwardOffered = true;
  CHECK(std::ranges::count_if(fusions.records, [](const FusionRecord &record) {
          return record.code == "F033" &&
                 record.detail.find("sample-attention-backward: it is switched off") !=
                     std::string::npos;
        }) == 1);
  const std::vector<std::string> kernels = kernelsOf(selection);
  CHECK(kernels.front() == "attention_mask");
  CHECK(kernels.size() > 5);
  for (const std::string &name : nonEmpty(kernels))
    CHECK_THAT(name, !Catch::StartsWith("attention_backward"));
  const auto module = materialize(*variant.module, problem, selection.best());
  test::requireSame(loaded->graph(), test::graphOf(*module));
}
