// A fused attention by heads, rows and columns, and the layouts that families offer.
#include "codegen/families/attention/AttentionLayouts.h"
#include "codegen/families/attention/AttentionProblem.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/Device.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace weft;
using samples::AttentionExtents;
using samples::FusedAttention;
using weft::test::nonEmpty;

namespace {

AttentionRegion regionOf(const Kernel &kernel) { return attentionRegion(kernel).value(); }

Configuration rowMajorConfiguration(const Kernel &kernel) {
  LayoutTuple tuple;
  for (const ValueId value : operandValues(kernel))
    tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return toConfiguration(kernel, tuple, FmaGemmKnobs{});
}

AttentionProblem problemOf(const Kernel &kernel, const Configuration &configuration) {
  return valueOrThrow(attentionProblem(kernel, regionOf(kernel), configuration));
}

std::string axisNames(const Kernel &kernel, const std::vector<AxisId> &axes) {
  std::string names;
  for (const AxisId axis : axes) names += kernel.axes[size_t(axis)].name;
  return names;
}

}  // namespace

TEST_CASE("logarithms of sums lie as rows are numbered, whatever the order of their axes") {
  const AttentionExtents e{.b = 2, .h = 3, .g = 4, .j = 512, .k = 512, .p = 64, .w = 64};
  Kernel kernel = samples::causalAttention(e, DType::bf16, true);
  const AttentionRegion region = regionOf(kernel);
  std::vector<AxisId> &axes = kernel.values[size_t(region.logSums)].axes;
  REQUIRE(axisNames(kernel, axes) == "bhgj");
  axes = {axes[1], axes[2], axes[0], axes[3]};  // h g b j, as of grouped heads in training
  CHECK(axisNames(kernel, attentionRowAxes(kernel, region)) == "bhgj");
  const Layout layout = plainLayout(kernel, region, region.logSums);
  CHECK(layout.order == std::vector<int>{2, 0, 1, 3});
  CHECK(plainLayout(kernel, region, region.k) == logicalLayout(kernel, region.k));
  const std::vector<ValueId> operands = operandValues(kernel);
  const size_t place = size_t(std::ranges::find(operands, region.logSums) - operands.begin());
  for (const LayoutTuple &tuple : nonEmpty(attentionTuples(kernel, region)))
    CHECK(tuple[place] == layout);
  int taken = 0;  // by attention-sm90, which takes no other order of them
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    taken += configuration.knobs.family().name == "attention-sm90";
    return taken == 0;
  });
  CHECK(taken == 1);
}

TEST_CASE("heads of a group are neighbours and share the strides of keys and values") {
  const AttentionExtents e{.b = 2, .h = 3, .g = 4, .j = 50, .k = 70, .p = 64, .w = 80};
  const Kernel kernel = samples::causalAttention(e, DType::bf16, true);
  Configuration configuration = rowMajorConfiguration(kernel);
  configuration.inputs[0].order = {0, 3, 1, 2, 4};  // b j h g p
  configuration.inputs[2].offset = 640;
  const AttentionProblem problem = problemOf(kernel, configuration);
  CHECK(axisNames(kernel, problem.headAxes) == "bhg");
  CHECK(problem.headExtents == std::vector<int64_t>{2, 3, 4});
  CHECK(problem.heads == 24);
  CHECK(problem.headsOfGroup == 4);
  CHECK(kernel.axes[size_t(problem.queryAxis)].name == "j");
  CHECK(kernel.axes[size_t(problem.keyAxis)].name == "k");
  CHECK(std::tuple(problem.queries, problem.keys, problem.headDim, problem.valueDim) ==
        std::tuple(50, 70, 64, 80));
  CHECK(problem.operandType == DType::bf16);
  CHECK(problem.scale == 0.125);
  CHECK(problem.q.headStrides == std::vector<int64_t>{50 * 768, 256, 64});
  CHECK(std::tuple(problem.q.rowStride, problem.q.columnStride) == std::tuple(768, 1));
  CHECK(problem.k.headStrides == std::vector<int64_t>{3 * 70 * 64, 70 * 64, 0});
  CHECK(problem.v.headStrides == std::vector<int64_t>{3 * 70 * 80, 70 * 80, 0});
  CHECK(problem.v.offset == 640);
  CHECK(problem.output.rowStride == 80);
  CHECK(problem.output.operand == 3);
  CHECK(problem.logSums.value().headStrides == std::vector<int64_t>{600, 200, 50});
  CHECK(problem.logSums->rowStride == 1);
  CHECK(problem.q.hasAlignedRows(2, 16));
  configuration.inputs[0].alignment = 8;
  CHECK(!problemOf(kernel, configuration).q.hasAlignedRows(2, 16));
}

TEST_CASE("the axis of queries is the one that masks read, else the longest") {
  const auto queryAxis = [](const Kernel &kernel) {
    return kernel.axes[size_t(problemOf(kernel, rowMajorConfiguration(kernel)).queryAxis)].name;
  };
  // Eight heads of a group, four queries.
  CHECK(queryAxis(samples::causalAttention({.g = 8, .j = 4}, DType::f16)) == "j");
  CHECK(queryAxis(samples::plainAttention({.g = 8, .j = 4}, DType::f16)) == "g");
  CHECK(queryAxis(samples::plainAttention({.g = 4, .j = 4}, DType::f16)) == "j");
  // One query: its coordinate is always 0.
  CHECK(queryAxis(samples::causalAttention({.g = 8, .j = 1}, DType::f16)) == "g");
}

TEST_CASE("operands of different types are no problem of an attention") {
  Kernel kernel = samples::plainAttention({}, DType::f16);
  kernel.values[size_t(kernel.inputs[2])].dtype = DType::f32;
  const auto answer = attentionProblem(kernel, regionOf(kernel), rowMajorConfiguration(kernel));
  REQUIRE(!answer);
  CHECK(std::string(answer.error().what()) ==
        "'q' is f16 and 'v' f32; queries, keys and values have one element type");
}

TEST_CASE("layouts keep elements of a head together and offer every order of the rest") {
  const AttentionExtents e{.b = 2, .h = 3, .j = 50, .k = 70};
  const Kernel kernel = samples::plainAttention(e, DType::f16);
  const std::vector<LayoutTuple> tuples = attentionTuples(kernel, regionOf(kernel));
  CHECK(tuples.size() == 6 * 6 * 6 * 6);
  CHECK(std::ranges::is_sorted(tuples));
  CHECK(std::set(tuples.begin(), tuples.end()).size() == tuples.size());
  for (const LayoutTuple &tuple : tuples) {
    const AttentionProblem problem =
        problemOf(kernel, toConfiguration(kernel, tuple, FmaGemmKnobs{}));
    for (const AttentionTensor *tensor : {&problem.q, &problem.k, &problem.v, &problem.output})
      CHECK(tensor->columnStride == 1);
  }
}

TEST_CASE("many layouts are cut down, inputs of score ops and statistics first") {
  const AttentionExtents e{.b = 2, .h = 3, .g = 4, .j = 50, .k = 70};
  FusedAttention attention("biased", e, DType::f16);
  const int bias = attention.input("bias", "hgjk", DType::f16);
  const Kernel kernel = attention.build(
      attention.map("add", "{0} + {1}", {attention.scores(), bias}, "biased"), true);
  const AttentionRegion region = regionOf(kernel);
  const std::vector<LayoutTuple> tuples = attentionTuples(kernel, region);
  CHECK(tuples.size() > 300);
  CHECK(tuples.size() <= mostAttentionTuples);
  std::set<Layout> ofBias, ofLogSums, ofQueries, ofValues;
  int lieOtherwise = 0;
  for (const LayoutTuple &tuple : tuples) {
    ofBias.insert(tuple[3]);
    ofLogSums.insert(tuple[5]);
    ofQueries.insert(tuple[0]);
    ofValues.insert(tuple[2]);
    lieOtherwise += tuple[1].order != tuple[2].order;
  }
  CHECK(lieOtherwise > 0);  // keys are turned, values are not: they come from different kernels
  CHECK(ofBias.size() == 1);
  CHECK(ofLogSums.size() == 1);
  CHECK(ofValues.size() == 6);
  const auto order = [](std::vector<int> dimensions) { return Layout{std::move(dimensions)}; };
  for (const std::vector<int> &one :
       {std::vector{0, 1, 2, 3, 4}, {0, 3, 1, 2, 4}, {3, 0, 1, 2, 4}, {1, 2, 0, 3, 4}})
    CHECK(ofQueries.contains(order(one)));
}
