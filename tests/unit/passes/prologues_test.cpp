// Proposals of contractions with what is before them, on plain dataflow graphs: which sets,
// which reasons, and that loop kernels of the same ops stay as they are.
#include "kernel/ContractionRegion.h"
#include "kernel/Device.h"
#include "passes/configure/Families.h"
#include "tests/unit/samples/SampleFlows.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::samples;

namespace {

using Sets = std::vector<std::vector<int>>;

FuseOptions takingAll() {
  FuseOptions options;
  options.epilogueRejection =
      options.prologueRejection = [](const Kernel &) { return std::string(); };
  return options;
}

/// A norm whose statistics are tensors, applied before a projection with a bias: ops 0 to 3,
/// contraction 4, bias 5.
struct Normalized {
  FlowBuilder graph{{{'b', 2}, {'j', 64}, {'i', 128}, {'u', 64}}};
  int x = graph.argument("x", "bji"), mean = graph.argument("mean", "bj"),
      rstd = graph.argument("rstd", "bj"), gamma = graph.argument("gamma", "i"),
      beta = graph.argument("beta", "i"), w = graph.argument("w", "iu"),
      bias = graph.argument("bias", "u");
  int centered = graph.map("sub", "centered", {{x, "bji"}, {mean, "bj"}}, "bji");
  int normal = graph.map("mul", "normal", {{centered, "bji"}, {rstd, "bj"}}, "bji");
  int gained = graph.map("mul", "gained", {{normal, "bji"}, {gamma, "i"}}, "bji");
  int shifted = graph.map("add", "shifted", {{gained, "bji"}, {beta, "i"}}, "bji");
  int gemm = graph.contract("gemm", shifted, "bji", w, "iu", "bju");
  int biased = graph.map("bias", "biased", {{gemm, "bju"}, {bias, "u"}}, "bju");
};

}  // namespace

TEST_CASE("without a target nothing is fused in front of a contraction") {
  Normalized all;
  FuseOptions options;
  options.epilogueRejection = [](const Kernel &) { return std::string(); };
  const FusionResult result = proposeFusions(all.graph.build({all.biased}), options);
  CHECK(candidatesWith(result, 4) == Sets{{4, 5}});
  CHECK(verdict(result, {3, 4}) == "F022 contraction-prologue (gemm)");
}

TEST_CASE(
    "a target that takes prologues gets the whole chain, its last op, and the chain with what "
    "follows; loop kernels stay") {
  Normalized all;
  const Dataflow flow = all.graph.build({all.biased});
  for (const char *device : {"h200", "a100"}) {
    FuseOptions options;
    options.epilogueRejection = epilogueRejections(findDevice(device));
    options.prologueRejection = prologueRejections(findDevice(device));
    const FusionResult result = proposeFusions(flow, options);
    CHECK(candidatesWith(result, 4) == Sets{{4, 5}, {3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}});
    CHECK(verdict(result, {0, 1}) == "accepted");
    CHECK(candidatesWith(result, 0).size() == 5);
  }
}

TEST_CASE("results that others read or that leave are no prologue") {
  for (const bool leaves : {false, true}) {
    FlowBuilder graph({{'j', 6}, {'i', 8}, {'u', 8}});
    const int x = graph.argument("x", "ji"), w = graph.argument("w", "iu");
    const int before = graph.map("relu", "before", {{x, "ji"}}, "ji"),
              after = graph.map("gelu", "after", {{before, "ji"}}, "ji");
    const int gemm = graph.contract("gemm", after, "ji", w, "iu", "ju");
    const FusionResult result = proposeFusions(
        graph.build(leaves ? std::vector{gemm, after} : std::vector{gemm, before}), takingAll());
    CHECK(verdict(result, {1, 2}) == (leaves ? "F022 contraction-prologue (gemm)" : "accepted"));
    CHECK(candidatesWith(result, 2) == (leaves ? Sets{} : Sets{{1, 2}}));
  }
}

TEST_CASE("both operands have a separate chain, and one joins") {
  FlowBuilder graph({{'j', 6}, {'i', 8}, {'u', 8}});
  const int x = graph.argument("x", "ji"), w = graph.argument("w", "iu");
  const int left = graph.map("relu", "left", {{x, "ji"}}, "ji"),
            right = graph.map("relu", "right", {{w, "iu"}}, "iu");
  const int gemm = graph.contract("gemm", left, "ji", right, "iu", "ju");
  const FusionResult result = proposeFusions(graph.build({gemm}), takingAll());
  CHECK(candidatesWith(result, 2) == Sets{{0, 2}, {1, 2}});
}

TEST_CASE(
    "a chain ends where two tensors of the operand's shape meet, at ops that are no function of "
    "single elements, and at norms") {
  FlowBuilder graph({{'j', 6}, {'i', 8}, {'u', 8}});
  const int x = graph.argument("x", "ji"), y = graph.argument("y", "ji"),
            w = graph.argument("w", "iu");
  const int early = graph.map("relu", "early", {{x, "ji"}}, "ji");                 // 0
  const int sum = graph.map("residual", "sum", {{early, "ji"}, {y, "ji"}}, "ji");  // 1
  const int last = graph.map("relu", "last", {{sum, "ji"}}, "ji");                 // 2
  const int gemm = graph.contract("gemm", last, "ji", w, "iu", "ju");              // 3
  const int prob = graph.norm("prob", gemm, "ju");                                 // 4
  const int drawn = graph.map("dropout", "drawn", {{prob, "ju"}}, "ju");           // 5
  graph.flow.ops.back().expression = {};
  const int other = graph.contract("other", drawn, "ju", w, "iu", "ji");  // 6
  const FusionResult result = proposeFusions(graph.build({other}), takingAll());
  CHECK(verdict(result, {2, 3}) == "accepted");
  CHECK_THAT(verdict(result, {1, 2, 3}),
             Catch::StartsWith("F025 no-prologue ('residual' reads 'y', a second tensor along rows "
                               "and k of the operand"));
  CHECK(verdict(result, {0, 1, 2, 3}) == "no record");
  CHECK(verdict(result, {5, 6}) == "F022 contraction-prologue (other)");
  CHECK(candidatesWith(result, 6).empty());
}

TEST_CASE("what no family takes is not proposed, and says why") {
  Normalized all;
  FuseOptions options = takingAll();
  options.prologueRejection = [](const Kernel &kernel) {
    return contractionRegion(kernel)->prologue->contraction > 1 ? "one op is enough" : "";
  };
  const FusionResult result = proposeFusions(all.graph.build({all.biased}), options);
  CHECK(verdict(result, {0, 1, 2, 3, 4}) == "F026 contraction-prologue-off (one op is enough)");
  CHECK(candidatesWith(result, 4) == Sets{{4, 5}, {3, 4}, {3, 4, 5}});
}
