// Precision tf32 in graphs: every pass keeps it, and what a contraction computes in fp64 does not
// depend on it.
#include "kernel/StridedBatchedGemm.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleGraphs.h"

#include <fmt/ranges.h>

using namespace weft;
using namespace weft::test;

namespace {

void mark(GraphOp graph) {
  graph.walk([](ContractOp op) { op.setPrecision("tf32"); });
}

/// Contractions with the precision, and those without.
std::pair<int, int> counted(GraphOp graph) {
  std::pair<int, int> count;
  graph.walk([&](ContractOp op) { ++(op.getPrecision() ? count.first : count.second); });
  return count;
}

}  // namespace

TEST_CASE("gradients, stacked projections and folded scales keep the precision; kernels say it") {
  for (const auto &[name, dims] :
       {std::pair<const char *, Dims>{"paper-encoder", smallEncoder}, {"llama-3-8b", smallLlama}}) {
    INFO(name);
    const auto plain = preset(name, dims), loaded = preset(name, dims);
    mark(loaded->graph());
    requireSame(plain->graph(), loaded->graph());
    REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
    CHECK(counted(loaded->graph()).first > 15);
    CHECK(counted(loaded->graph()).second == 0);
    for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, {}))) {
      INFO(variantName(variant.rewrites));
      GraphOp graph = graphOf(*variant.module);
      CHECK(counted(graph).first > 10);
      CHECK(counted(graph).second == 0);
      const auto isGemm = [](mlir::Operation *op) { return mlir::isa<ContractOp>(op); };
      for (mlir::Operation *op : nonEmpty(numberedOps(graph), isGemm))
        CHECK(gemmTypes(toKernel({op}, "gemm")).areTf32());
    }
  }
}

TEST_CASE("a graph without the precision gets none") {
  const auto loaded = preset("paper-encoder", smallEncoder);
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  for (const Variant &variant : nonEmpty(proposeVariants(*loaded->module, {})))
    CHECK(counted(graphOf(*variant.module)).first == 0);
}

TEST_CASE("a gradient of other operands than f32 has none") {
  const auto loaded = parse(R"(
    !ik = tensor<2x3xf32, #weft.axes<i, k>>
    !kj = tensor<3x4xf32, #weft.axes<k, j>>
    !ij = tensor<2x4xf16, #weft.axes<i, j>>
    weft.graph @narrow(%a: !ik, %b: !kj) -> !ij {
      %c = weft.contract "ik,kj->ij" %a, %b {precision = tf32} : !ik, !kj -> !ij
      weft.return %c : !ij
    })");
  REQUIRE(mlir::succeeded(differentiate(loaded->graph(), {})));
  CHECK(mlir::succeeded(mlir::verify(loaded->graph())));
  CHECK(counted(loaded->graph()) == std::pair(1, 2));
}
