// Loop kernels over packed tokens are priced as shorter ones exactly where they leave out what lies
// behind the last token, and by the loads that they have in flight; the text says where a block
// fills a multiprocessor.
#include "codegen/Emit.h"
#include "codegen/families/loop/LoopCost.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "passes/configure/FilledCost.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/support/NonEmpty.h"

#include <catch2/catch.hpp>

#include <memory>

using namespace weft;
using weft::test::nonEmpty;

namespace {

/// Configurations that are priced below the whole kernel at a quarter of the tokens, and those that
/// are not; of each the text says whether it asks for the number of tokens.
struct Counts {
  size_t shorter = 0, whole = 0;
};

Counts check(const Kernel &kernel) {
  const Device &h200 = findDevice("h200");
  const std::unique_ptr<CostModel> whole = analyticCostModel(h200),
                                   quarter =
                                       filledCostModel(*whole, {.tokens = 0.25, .pairs = 0.0625});
  Counts counts;
  const std::vector<ConfigurationSpace> spaces = configurationSpaces(kernel, h200);
  for (const ConfigurationSpace &space : nonEmpty(spaces)) {
    if (!(*space.family == LoopKnobs::family())) continue;
    for (size_t k = 0; k < space.knobs.size(); k += 7) {
      const Configuration one = examples::rowMajorConfiguration(kernel, space.knobs[k]);
      INFO(describe(kernel, one.knobs));
      const double all = whole->cost(kernel, one).seconds, few = quarter->cost(kernel, one).seconds;
      const std::string text = codegen::emit(kernel, one, "sm_90a").text;
      const bool stops = text.find(" tokens = ") != std::string::npos;
      CHECK((few < all) == stops);
      ++(stops ? counts.shorter : counts.whole);
    }
  }
  return counts;
}

Kernel exampleOf(const std::string &name) {
  return examples::findLoopExample(name, DType::f16, 1).kernel;
}

/// A result of it is of all rows: nothing ends with the last token.
Kernel withStoredProduct() {
  Kernel stored = exampleOf("token_bias_gradient");
  for (BodyOp &op : nonEmpty(stored.body))
    if (op.kind == OpKind::mul) stored.outputs[0] = op.results[0];
  return stored;
}

LoopKnobs columnsOf(ReductionMapping mapping, int threads, int threadsPerRow, int blocks) {
  return {.vectorAxis = 2,
          .vectorWidth = 8,
          .laneAxis = 2,
          .reduction = mapping,
          .threads = threads,
          .threadsPerRow = threadsPerRow,
          .blocksPerRow = blocks};
}

}  // namespace

TEST_CASE("loop kernels that end with the last token are priced so under every mapping") {
  for (const char *name : {"token_bias_gradient", "token_norm_gradients", "token_row_sums"}) {
    const Counts counts = check(exampleOf(name));
    CHECK(counts.shorter > 10);
    CHECK(counts.whole == 0);
  }
}

TEST_CASE("a loop kernel that computes what is no token is not priced as a shorter one") {
  Kernel unmasked = exampleOf("token_norm_gradients");  // one sum is of all rows
  for (BodyOp &op : nonEmpty(unmasked.body))
    if (op.kind == OpKind::reduce) op.operands[0] = unmasked.inputs.back();
  for (const Kernel &kernel : {unmasked, withStoredProduct(), exampleOf("bias_gradient")}) {
    const Counts counts = check(kernel);
    CHECK(counts.shorter == 0);
    CHECK(counts.whole > 10);
  }
}

TEST_CASE("columns that end with the last token have four steps in flight, others eight") {
  const Device &h200 = findDevice("h200");
  const Kernel ending = exampleOf("token_bias_gradient"), whole = withStoredProduct();
  const auto share = [&](const Kernel &kernel, int threads, int threadsPerRow) {
    return LoopPricer(kernel, h200)
        .price(columnsOf(ReductionMapping::blockColumns, threads, threadsPerRow, 1))
        .share;
  };
  CHECK(share(ending, 256, 8) < share(whole, 256, 8));           // 512 steps
  CHECK(share(ending, 1024, 1024) == share(whole, 1024, 1024));  // four
}

TEST_CASE("a block of columns of tokens whose sums fill half of the registers says so to ptxas") {
  const auto bounds = [&](const std::string &name, int threads) {
    const Kernel kernel = exampleOf(name);
    const std::string text =
        codegen::emit(kernel,
                      examples::rowMajorConfiguration(
                          kernel, columnsOf(ReductionMapping::gridColumns, threads, 64, 32)),
                      "sm_90a")
            .text;
    const size_t begin = text.find("__launch_bounds__(");
    REQUIRE(begin != std::string::npos);
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(bounds("token_norm_gradients", 512) ==
        "__launch_bounds__(columnsPerBlock * threadsPerColumn, 1)");
  CHECK(bounds("token_norm_gradients", 256) ==
        "__launch_bounds__(columnsPerBlock * threadsPerColumn)");
}
