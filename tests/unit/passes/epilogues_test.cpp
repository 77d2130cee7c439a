// Proposals of contractions with what follows them, on plain dataflow graphs: which sets, which
// reasons, and that loop kernels of the same ops stay as they are.
#include "codegen/families/library/LibraryEpilogue.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Device.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleFlows.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;

namespace {

/// x w -> bias -> dropout -> residual -> softmax, as the end of an attention layer.
Dataflow attentionEnd() {
  FlowBuilder graph({{'j', 6}, {'i', 8}, {'u', 8}});
  const int x = graph.argument("x", "ji"), w = graph.argument("w", "iu"),
            beta = graph.argument("beta", "u"), rest = graph.argument("rest", "ju");
  const int gemm = graph.contract("gemm", x, "ji", w, "iu", "ju");
  const int biased = graph.map("bias", "biased", {{gemm, "ju"}, {beta, "u"}}, "ju");
  const int kept = graph.map("tanh", "kept", {{biased, "ju"}}, "ju");
  const int sum = graph.map("residual", "sum", {{kept, "ju"}, {rest, "ju"}}, "ju");
  const int y = graph.norm("y", sum, "ju");
  return graph.build({y});
}

FuseOptions takingAll() {
  FuseOptions options;
  options.epilogueRejection = [](const Kernel &) { return std::string(); };
  return options;
}

}  // namespace

TEST_CASE("without a target nothing is fused into a contraction") {
  const FusionResult result = proposeFusions(attentionEnd(), FuseOptions{});
  CHECK(candidatesWith(result, 0).empty());
  CHECK(verdict(result, {0, 1}) == "F021 contraction-epilogue-off (gemm)");
}

TEST_CASE("a target that takes epilogues gets every prefix, and loop kernels stay") {
  const Dataflow flow = attentionEnd();
  const FusionResult before = proposeFusions(flow, FuseOptions{}),
                     after = proposeFusions(flow, takingAll());
  CHECK(candidatesWith(after, 0) == std::vector<std::vector<int>>{{0, 1}, {0, 1, 2}, {0, 1, 2, 3}});
  CHECK(verdict(after, {0, 1, 2, 3}) == "accepted");
  CHECK(verdict(after, {0, 1, 2, 3, 4}) ==
        "F024 no-epilogue ('softmax' is of class normalization; an epilogue is element-wise)");
  std::vector<std::vector<int>> loops;
  for (const FusionCandidate &candidate : after.candidates)
    if (candidate.ops.size() == 1 || candidate.ops.front() != 0) loops.push_back(candidate.ops);
  std::vector<std::vector<int>> expected;
  for (const FusionCandidate &candidate : before.candidates) expected.push_back(candidate.ops);
  CHECK(loops == expected);
}

TEST_CASE("bytes saved by an epilogue: the GEMM is never stored") {
  const FusionResult result = proposeFusions(attentionEnd(), takingAll());
  for (const FusionRecord &record : nonEmpty(result.records)) {
    if (record.ops == std::vector<int>{0, 1}) CHECK(record.savedBytes == 2 * 6 * 8 * 2);
    if (record.ops == std::vector<int>{0, 1, 2, 3}) CHECK(record.savedBytes == 6 * 6 * 8 * 2);
  }
}

TEST_CASE("what no family takes is not grown, and says why") {
  FuseOptions options;
  int asked = 0;
  options.epilogueRejection = [&](const Kernel &kernel) {
    ++asked;
    return kernel.body.size() > 2 ? "one op is enough" : "";
  };
  const FusionResult result = proposeFusions(attentionEnd(), options);
  CHECK(candidatesWith(result, 0) == std::vector<std::vector<int>>{{0, 1}});
  CHECK(verdict(result, {0, 1, 2}) == "F021 contraction-epilogue-off (one op is enough)");
  CHECK(verdict(result, {0, 1, 2, 3}) == "no record");
  CHECK(asked == 2);
}

TEST_CASE("rules and options hold for contractions") {
  FuseOptions paper = takingAll();
  paper.rules = FuseRules::paper;
  CHECK(candidatesWith(proposeFusions(attentionEnd(), paper), 0).empty());
  CHECK(verdict(proposeFusions(attentionEnd(), paper), {0, 1}) == "F020 contraction (gemm)");
  FuseOptions apart = takingAll();
  apart.forbidden = {{0, 2}};
  CHECK(candidatesWith(proposeFusions(attentionEnd(), apart), 0) ==
        std::vector<std::vector<int>>{{0, 1}});
  CHECK(verdict(proposeFusions(attentionEnd(), apart), {0, 1, 2}) ==
        "F050 forbidden-by-option (0,2)");
  FuseOptions none = takingAll();
  none.rules = FuseRules::none;
  CHECK(candidatesWith(proposeFusions(attentionEnd(), none), 0).empty());
  none.forced = {{0, 1}};
  CHECK(candidatesWith(proposeFusions(attentionEnd(), none), 0) ==
        std::vector<std::vector<int>>{{0, 1}, {0, 1, 2}, {0, 1, 2, 3}});
  FuseOptions few = takingAll();
  few.maxEpilogues = 1;
  CHECK(candidatesWith(proposeFusions(attentionEnd(), few), 0) ==
        std::vector<std::vector<int>>{{0, 1, 2, 3}});
  CHECK(verdict(proposeFusions(attentionEnd(), few), {0, 1}) ==
        "F070 candidate-bound (1 epilogues of a contraction)");
}

TEST_CASE("a contraction's kernel contains neither the writers of its operands nor unrelated ops") {
  FlowBuilder graph({{'j', 6}, {'i', 8}, {'u', 8}});
  const int x = graph.argument("x", "ji"), w = graph.argument("w", "iu"),
            v = graph.argument("v", "iu");
  const int before = graph.map("relu", "before", {{x, "ji"}}, "ji");
  const int first = graph.contract("first", before, "ji", w, "iu", "ju");
  const int second = graph.contract("second", before, "ji", v, "iu", "ju");
  const int gated = graph.map("mul", "gated", {{first, "ju"}, {second, "ju"}}, "ju");
  const FusionResult result = proposeFusions(graph.build({gated}), takingAll());
  CHECK(verdict(result, {0, 1}) == "F022 contraction-prologue (first)");
  CHECK(verdict(result, {1, 2}) == "F023 beside-contraction (first)");
  CHECK(verdict(result, {1, 3}) == "accepted");  // the other GEMM comes from memory
  CHECK(verdict(result, {2, 3}) == "accepted");
  CHECK(candidatesWith(result, 1) == std::vector<std::vector<int>>{{1, 3}});
}

TEST_CASE("a path that leaves the set forbids it") {
  FlowBuilder graph({{'j', 6}, {'i', 8}, {'u', 8}});
  const int x = graph.argument("x", "ji"), w = graph.argument("w", "iu");
  const int gemm = graph.contract("gemm", x, "ji", w, "iu", "ju");
  const int shares = graph.norm("shares", gemm, "ju");
  const int weighted = graph.map("mul", "weighted", {{gemm, "ju"}, {shares, "ju"}}, "ju");
  const FusionResult result = proposeFusions(graph.build({weighted}), takingAll());
  CHECK(verdict(result, {0, 2}) == "F030 would-create-cycle (shares)");
  CHECK(candidatesWith(result, 0).empty());
}

TEST_CASE(
    "sums join a contraction where a family takes them: of its result, behind an epilogue, or of "
    "an operand") {
  FlowBuilder graph({{'j', 6}, {'i', 8}, {'u', 8}});
  const int dy = graph.argument("dy", "ju"), w = graph.argument("w", "iu"),
            x = graph.argument("x", "ji"), kept = graph.argument("kept", "ji");
  const int dbias = graph.sum("dbias", dy, "ju", "u");  // 0, before the contraction that reads dy
  const int dw = graph.contract("dw", x, "ji", dy, "ju", "iu");                            // 1
  const int dx = graph.contract("dx", dy, "ju", w, "iu", "ji");                            // 2
  const int slope = graph.map("gelu_tanh_dx", "slope", {{dx, "ji"}, {kept, "ji"}}, "ji");  // 3
  const int before = graph.sum("before", slope, "ji", "i");                                // 4
  const Dataflow flow = graph.build({dbias, dw, slope, before});
  std::vector<Kernel> asked;
  FuseOptions options;
  options.epilogueRejection = [&](const Kernel &kernel) {
    asked.push_back(kernel);
    return reasonOf(libraryForm(kernel));
  };
  const FusionResult result = proposeFusions(flow, options);
  CHECK(candidatesWith(result, 1) == std::vector<std::vector<int>>{{0, 1}});
  CHECK(candidatesWith(result, 2) == std::vector<std::vector<int>>{{2, 3}, {2, 3, 4}});
  CHECK_THAT(verdict(result, {0, 2}), Catch::StartsWith("F021 contraction-epilogue-off ('reduce'"));
  // Whatever the order of the graph, the contraction opens the kernel and its result comes first.
  for (const Kernel &kernel : nonEmpty(asked)) {
    CHECK(kernel.body[0].kind == OpKind::contract);
    CHECK(kernel.values[size_t(kernel.outputs[0])].axes.size() == 2);
  }
  options.epilogueRejection = [](const Kernel &kernel) {
    return kernel.body.back().kind == OpKind::reduce ? "no sums" : "";
  };
  CHECK(candidatesWith(proposeFusions(flow, options), 1).empty());
  CHECK(verdict(proposeFusions(flow, options), {0, 1}) ==
        "F021 contraction-epilogue-off (no sums)");
}

TEST_CASE(
    "sums of what an epilogue computes join it on sm_90a, behind its other results whatever the "
    "order of the graph") {
  FlowBuilder graph({{'b', 2}, {'j', 64}, {'i', 128}, {'u', 64}});
  const int dy = graph.argument("dy", "bju"), w = graph.argument("w", "iu"),
            kept = graph.argument("kept", "bji");
  const int dx = graph.contract("dx", dy, "bju", w, "iu", "bji");  // 0
  const int early = graph.sum("early", dx, "bji", "i");            // 1, before the next result
  const int slope = graph.map("gelu_dx", "slope", {{dx, "bji"}, {kept, "bji"}}, "bji");  // 2
  const int bias = graph.sum("bias", slope, "bji", "i");                                 // 3
  const int part = graph.sum("part", slope, "bji", "bi");                                // 4
  const Dataflow flow = graph.build({early, slope, bias, part});
  FuseOptions options;
  const auto rejections = epilogueRejections(findDevice("h200"));
  std::vector<Kernel> taken;
  options.epilogueRejection = [&](const Kernel &kernel) {
    std::string rejection = rejections(kernel);
    if (rejection.empty()) taken.push_back(kernel);
    return rejection;
  };
  const FusionResult result = proposeFusions(flow, options);
  CHECK(verdict(result, {0, 2, 3}) == "accepted");
  CHECK(verdict(result, {0, 1, 2, 3}) == "accepted");
  CHECK_THAT(verdict(result, {0, 2, 4}),
             Catch::StartsWith("F021 contraction-epilogue-off (gemm-sm90: 'reduce' to "
                               "'part' leaves not just the axes"));
  REQUIRE(!taken.empty());
  for (const Kernel &kernel : nonEmpty(taken)) {
    CHECK(contractionRegion(kernel));
    CHECK(kernel.values[size_t(kernel.outputs[0])].axes.size() == 3);
  }
}

TEST_CASE(
    "what is made for sums alone joins with them: no candidate stores squares, and the epilogue "
    "without sums keeps its place") {
  FlowBuilder graph({{'b', 2}, {'j', 64}, {'i', 128}, {'u', 64}});
  const int x = graph.argument("x", "bju"), w = graph.argument("w", "iu"),
            beta = graph.argument("beta", "i"), rest = graph.argument("rest", "bji");
  const int gemm = graph.contract("gemm", x, "bju", w, "iu", "bji");                    // 0
  const int biased = graph.map("bias", "biased", {{gemm, "bji"}, {beta, "i"}}, "bji");  // 1
  const int residual =
      graph.map("residual", "residual", {{biased, "bji"}, {rest, "bji"}}, "bji");        // 2
  const int sum = graph.sum("sum", residual, "bji", "bj");                               // 3
  const int size = graph.map("relu", "size", {{residual, "bji"}}, "bji");                // 4
  const int square = graph.map("mul", "square", {{size, "bji"}, {size, "bji"}}, "bji");  // 5
  const int squares = graph.sum("squares", square, "bji", "bj");                         // 6
  const Dataflow flow = graph.build({residual, sum, squares});
  FuseOptions options;
  options.epilogueRejection = epilogueRejections(findDevice("h200"));
  CHECK(candidatesWith(proposeFusions(flow, options), 0) ==
        std::vector<std::vector<int>>{
            {0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6}});
  // A result of the graph is no step to a sum.
  const Dataflow kept = graph.build({residual, sum, squares, square});
  CHECK(verdict(proposeFusions(kept, options), {0, 1, 2, 4, 5}) == "accepted");
}
