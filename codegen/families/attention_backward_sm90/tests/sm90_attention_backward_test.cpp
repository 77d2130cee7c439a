// Fused attention backward on sm_90a: which kernels and layouts it takes, in which tiles, what is
// emitted, what it needs of memory, and how its price grows.
#include "codegen/Emit.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

std::vector<Configuration> own(const Kernel &kernel, const char *device = "h200") {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, findDevice(device)).legal)
    if (configuration.knobs.is<Sm90AttentionBackwardKnobs>()) result.push_back(configuration);
  return result;
}

std::string exclusion(const Kernel &kernel, const char *device = "h200") {
  for (const Exclusion &excluded : enumerate(kernel, findDevice(device)).excluded)
    if (excluded.family == "attention-backward-sm90") return excluded.reason;
  return "";
}

AttentionBackwardProblem problemOf(const Kernel &kernel, const Configuration &configuration) {
  return *attentionBackwardProblem(kernel, *attentionBackwardRegion(kernel).region, configuration);
}

Configuration logicalOrder(const Kernel &kernel, const Sm90AttentionBackwardKnobs &knobs) {
  LayoutTuple tuple;
  for (const int value : operandValues(kernel))
    tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return toConfiguration(kernel, tuple, knobs);
}

double best(const Kernel &kernel) {
  double least = 1;
  for (const Configuration &one : nonEmpty(own(kernel)))
    least = std::min(least, analyticCostModel(findDevice("h200"))->cost(kernel, one).seconds);
  return least;
}

}  // namespace

TEST_CASE("fused attention backward takes heads of up to 128 columns, in layouts of whole rows") {
  for (const int64_t width : {16, 24, 64, 72, 80, 96, 128}) {
    const Kernel kernel = plainBackward({.j = 333, .k = 333, .p = width, .w = width}, DType::f16);
    INFO(width << " " << exclusion(kernel));
    const std::vector<Configuration> configurations = own(kernel);
    REQUIRE_FALSE(configurations.empty());
    for (const Configuration &configuration : configurations) {
      const AttentionBackwardProblem problem = problemOf(kernel, configuration);
      CHECK(sm90AttentionBackwardLayoutRejection(problem).empty());
      CHECK(sm90AttentionBackwardTileRejection(
                problem, configuration.knobs.get<Sm90AttentionBackwardKnobs>(), 2)
                .empty());
      CHECK(problem.dQ.columnStride == 1);
    }
  }
}

TEST_CASE("what fused attention backward does not take is said") {
  const AttentionExtents extents{.j = 64, .k = 64};
  CHECK_THAT(exclusion(plainBackward(extents, DType::f32)), Catch::Contains("f16 and bf16"));
  CHECK(exclusion(plainBackward({.p = 136, .w = 136}, DType::f16)) ==
        "heads of 136 and 136 columns; gradients of at most 128 fit the registers");
  CHECK_THAT(exclusion(plainBackward({.p = 36, .w = 36}, DType::f16)), Catch::Contains("16 bytes"));
  CHECK_THAT(exclusion(plainBackward(extents, DType::f16), "a100"), Catch::Contains("WGMMA"));
}

TEST_CASE("products and sums of a block of queries fit the registers") {
  const auto blocks = [](int64_t width) {
    const Kernel kernel = plainBackward({.j = 999, .k = 999, .p = width, .w = width}, DType::bf16);
    std::set<int> found;
    for (const Configuration &configuration : nonEmpty(own(kernel)))
      found.insert(configuration.knobs.get<Sm90AttentionBackwardKnobs>().tileQueries);
    return found;
  };
  // Queries + columns of keys and of values / 2: at most 192.
  CHECK(blocks(64) == std::set<int>{64, 128});
  CHECK(blocks(80) == std::set<int>{64});
  CHECK(blocks(128) == std::set<int>{64});
  CHECK(blocks(16) == std::set<int>{128});
  for (const Configuration &configuration :
       nonEmpty(own(biasedBackward({.j = 300, .k = 300}, DType::f16))))
    CHECK(configuration.knobs.get<Sm90AttentionBackwardKnobs>().tileQueries == 64);
}

TEST_CASE("emitted attention backward names its tensors, its workspace and its turns") {
  const Sm90AttentionBackwardKnobs knobs{.tileQueries = 128, .headGroup = 2};
  const auto emitted = [&](const Kernel &kernel) {
    return codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_90a");
  };
  const AttentionExtents extents{.b = 2, .h = 4, .j = 300, .k = 301};
  const codegen::EmittedKernel plain = emitted(plainBackward(extents, DType::f16)),
                               causal = emitted(causalBackward(extents, DType::f16)),
                               dropped =
                                   emitted(plainBackward(extents, DType::f16, Dropout{0.1, 1}));
  CHECK(plain.readable.find(".coverage") == std::string::npos);
  CHECK(plain.readable.find(".dropout") == std::string::npos);
  CHECK(causal.readable.find(".coverage = coverage") != std::string::npos);
  CHECK(dropped.readable.find(".dropout = ") != std::string::npos);
  for (const codegen::EmittedKernel &one : {plain, causal, dropped}) {
    CHECK(one.readable.find("__device__ unsigned tilesTaken;") != std::string::npos);
    // 8 heads of three blocks of queries.
    CHECK(one.readable.find("__device__ weft::sm90::Turns<24> turns;") != std::string::npos);
    CHECK(std::ranges::count(one.parameters, ParameterKind::workspace, &codegen::Parameter::kind) ==
          1);
  }
}

TEST_CASE("the sums of the queries' gradient take a workspace that grows with the queries") {
  const auto bytes = [](int64_t queries, int64_t width, int tileQueries) {
    const Kernel kernel =
        plainBackward({.b = 2, .h = 3, .j = queries, .k = 64, .p = width, .w = width}, DType::f16);
    const Sm90AttentionBackwardKnobs knobs{.tileQueries = tileQueries};
    return workspaceBytesOf(kernel, logicalOrder(kernel, knobs));
  };
  // Six heads, blocks of 128 or 64 queries, panels of 64 columns, four bytes.
  CHECK(bytes(256, 64, 128) == 6 * 256 * 64 * 4);
  CHECK(bytes(257, 64, 128) == 6 * 384 * 64 * 4);
  CHECK(bytes(257, 64, 64) == 6 * 320 * 64 * 4);
  CHECK(bytes(64, 80, 64) == 6 * 64 * 128 * 4);
}

TEST_CASE("prices of attention backward grow with scores, and masks save what they exclude") {
  const AttentionExtents small{.b = 8, .h = 16, .j = 1024, .k = 1024},
      large{.b = 8, .h = 16, .j = 2048, .k = 2048};
  const double one = best(plainBackward(small, DType::f16)),
               four = best(plainBackward(large, DType::f16));
  CHECK(four > 3.5 * one);
  CHECK(four < 4.2 * one);
  const double causal = best(causalBackward(large, DType::f16));
  CHECK(causal < 0.65 * four);
  CHECK(causal > 0.45 * four);
  CHECK(best(windowBackward(large, DType::f16, 128, 0)) < 0.4 * causal);
}
