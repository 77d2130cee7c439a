// The analytic model: what must be cheaper than what, and agreement with kernels measured on an
// H200 (within 25%).
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Append.h"
#include "kernel/CoordinateExpressions.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace weft;
using namespace weft::samples;

namespace {

const Device &h200() { return findDevice("h200"); }

double secondsOf(const Kernel &kernel, const Configuration &configuration) {
  return analyticCostModel(h200())->cost(kernel, configuration).seconds;
}

Configuration rowMajorConfiguration(const Kernel &kernel, const Knobs &knobs) {
  Configuration configuration{.knobs = knobs};
  for (ValueId value : kernel.inputs)
    configuration.inputs.push_back(rowMajor(kernel.values[value].axes.size()));
  for (ValueId value : kernel.outputs)
    configuration.outputs.push_back(rowMajor(kernel.values[value].axes.size()));
  return configuration;
}

/// The cheapest legal configuration, all row-major.
double bestSeconds(const Kernel &kernel, const Device &device = h200()) {
  LayoutConstraints constraints;
  for (ValueId value : kernel.inputs)
    constraints.inputs.push_back(rowMajor(kernel.values[value].axes.size()));
  for (ValueId value : kernel.outputs)
    constraints.outputs.push_back(rowMajor(kernel.values[value].axes.size()));
  const auto model = analyticCostModel(device);
  double best = INFINITY;
  forEachConfiguration(kernel, device, constraints, [&](const Configuration &configuration) {
    best = std::min(best, model->cost(kernel, configuration).seconds);
    return true;
  });
  return best;
}

/// bias + dropout + residual + layer norm over i.
Kernel layerNormKernel(int64_t rows, int64_t columns) {
  KernelBuilder builder("bias_dropout_residual_layernorm", {{'j', rows}, {'i', columns}});
  const int gemm = builder.input("gemm", "ji"), x = builder.input("x", "ji");
  const int bias = builder.input("bias", "i"), gamma = builder.input("gamma", "i"),
            beta = builder.input("beta", "i");
  const int biased = builder.op("bias", OperatorClass::elementwise, {gemm, bias}, "biased", "ji");
  const int dropped = builder.op("dropout", OperatorClass::elementwise, {biased}, "dropped", "ji");
  const int sum = builder.op("residual", OperatorClass::elementwise, {dropped, x}, "sum", "ji");
  return builder.build(
      {builder.op("layer_norm", OperatorClass::normalization, {sum, gamma, beta}, "y", "ji", "i")});
}

/// Relative distance; NaN is far.
bool within(double value, double reference, double tolerance) {
  return std::abs(value / reference - 1) <= tolerance;
}

constexpr int j = 1, i = 0;  // axes are numbered by letter

}  // namespace

TEST_CASE("wider vectors are never costlier for a streaming map") {
  const Kernel kernel = reluKernel({{'j', 65536}, {'i', 1024}}, "ji");
  double last = INFINITY;
  for (int width : {1, 2, 4, 8}) {
    const double seconds = secondsOf(
        kernel, rowMajorConfiguration(
                    kernel, LoopKnobs{.vectorAxis = i, .vectorWidth = width, .laneAxis = i}));
    CHECK(seconds < last);
    last = seconds;
  }
}

TEST_CASE("a gather costs what it reads of the table, which may lie anywhere there") {
  const auto gather = [](int64_t rows) {
    KernelBuilder builder("gather", {{'v', rows}, {'j', 1024}, {'i', 768}});
    const int table = builder.input("table", "vi"), ids = builder.input("ids", "j", DType::i32);
    const int y = builder.op("gather", OperatorClass::movement, {table, ids}, "y", "ji");
    return builder.build({y});
  };
  const Kernel many = gather(50257), few = gather(100);
  CHECK(movedElements(many, many.inputs[0]) == 1024 * 768);
  CHECK(movedElements(few, few.inputs[0]) == 100 * 768);
  CHECK(bestSeconds(many) < 1.2 * bestSeconds(gather(1024)));
  CHECK(bestSeconds(many) > (many.bytes(many.outputs[0]) * 2) / h200().peakBandwidth);
  const auto lanesAlong = [&](char axis, bool areRowsNeighbours = false) {
    const AxisId lanes = axis == 'j' ? 1 : 0;  // axes are numbered by letter
    Configuration configuration = rowMajorConfiguration(many, LoopKnobs{.laneAxis = lanes});
    if (axis == 'j') configuration.outputs[0].order = {1, 0};  // neighbours in the result, too
    if (areRowsNeighbours) configuration.inputs[0].order = {1, 0};
    return secondsOf(many, configuration);
  };
  CHECK(lanesAlong('j') > 1.5 * lanesAlong('i'));
  // Ids are rows anywhere, however the table lies.
  CHECK(lanesAlong('j', true) > 1.5 * lanesAlong('i'));
}

TEST_CASE("a slice costs what it reads") {
  KernelBuilder builder("slice", {{'b', 8}, {'j', 512}, {'i', 768}, {'o', 1}});
  const int x = builder.input("x", "bji");
  const int y = builder.op("slice", OperatorClass::movement, {x}, "y", "boi");
  builder.last().attributes = {{"axis", int64_t(1)}, {"start", int64_t(0)}};
  const Kernel kernel = builder.build({y});
  CHECK(movedElements(kernel, x) == 8 * 768);
  CHECK(kernel.necessaryBytes() == 2 * 8 * 768 * 2);
}

TEST_CASE("coalesced is cheaper than strided") {
  const Kernel kernel = reluKernel({{'j', 4096}, {'i', 1024}}, "ji");
  const auto lanes = [&](AxisId axis) {
    return secondsOf(
        kernel, rowMajorConfiguration(kernel, LoopKnobs{.vectorAxis = axis, .laneAxis = axis}));
  };
  CHECK(lanes(i) * 3 < lanes(j));
}

TEST_CASE("operands in two orders cost more than operands in one") {
  const Kernel kernel = reluKernel({{'j', 4096}, {'i', 1024}}, "ji");
  const LoopKnobs knobs{.vectorAxis = i, .vectorWidth = 8, .laneAxis = i};
  Configuration mixed = rowMajorConfiguration(kernel, knobs);
  mixed.outputs[0].order = {1, 0};
  CHECK(secondsOf(kernel, rowMajorConfiguration(kernel, knobs)) < secondsOf(kernel, mixed));
}

TEST_CASE("a column sum is cheaper with lanes along the columns") {
  KernelBuilder builder("sum", {{'j', 64}, {'i', 1 << 20}});
  const int x = builder.input("x", "ji");
  const Kernel kernel =
      builder.build({builder.op("reduce", OperatorClass::normalization, {x}, "s", "i", "j")});
  const Knobs along{
      LoopKnobs{.vectorAxis = i, .laneAxis = i, .reduction = ReductionMapping::sequential}};
  const Knobs across{LoopKnobs{
      .vectorAxis = j, .laneAxis = j, .reduction = ReductionMapping::warp, .threadsPerRow = 32}};
  CHECK(secondsOf(kernel, rowMajorConfiguration(kernel, along)) <
        secondsOf(kernel, rowMajorConfiguration(kernel, across)));
}

TEST_CASE("a view costs nothing") {
  const Kernel kernel = identityKernel({{'j', 4096}, {'i', 1024}}, "ji");
  CHECK(secondsOf(kernel, rowMajorConfiguration(kernel, ViewKnobs{})) == 0);
}

TEST_CASE("a GEMM of one tile more than two waves hold takes three") {
  // 64 x 64 tiles: 264 blocks against 265.
  const auto seconds = [&](int64_t rows) {
    const Kernel kernel =
        contractKernel({{'m', rows * 64}, {'n', 64}, {'k', 4096}}, "mk", "kn", "mn");
    return secondsOf(kernel, rowMajorConfiguration(kernel, FmaGemmKnobs{}));
  };
  CHECK(seconds(265) > 1.3 * seconds(264));
}

TEST_CASE("a plain contraction stays below the FMA peak") {
  const Kernel kernel = contractKernel({{'m', 4096}, {'n', 4096}, {'k', 1024}}, "mk", "kn", "mn");
  Device withoutLibrary = h200();
  withoutLibrary.familiesTakenAway.insert(&libraryFamily);
  withoutLibrary.architecture = "sm_70";  // no family for tensor cores
  const double flops = kernel.flop() / bestSeconds(kernel, withoutLibrary);
  CHECK(flops < h200().fmaFlops);
  CHECK(flops > 0.25 * h200().fmaFlops);
}

TEST_CASE("measured on an H200: 16-byte copy of 268 MB at 4283 GB/s") {
  const Kernel kernel = reluKernel({{'j', 65536}, {'i', 1024}}, "ji");
  CHECK(within(bestSeconds(kernel), static_cast<double>(kernel.necessaryBytes()) / 4283e9, 0.25));
}

TEST_CASE("measured on an H200: bias + dropout + residual + layer norm") {
  CHECK(within(bestSeconds(layerNormKernel(65536, 1024)), 95.6e-6, 0.25));
  CHECK(within(bestSeconds(layerNormKernel(4096, 1024)), 8.5e-6, 0.25));
}

TEST_CASE(
    "measured on an H200: row softmax 65536 x 4096 in 257.8 us, any of 64 to 256 threads a row") {
  const Kernel kernel = softmaxKernel({{'j', 65536}, {'k', 4096}}, "jk");
  CHECK(within(bestSeconds(kernel), 257.8e-6, 0.25));
  LoopKnobs knobs{
      .vectorAxis = 1, .vectorWidth = 8, .laneAxis = 1, .reduction = ReductionMapping::block};
  for (int threads : {128, 256}) {
    knobs.threads = knobs.threadsPerRow = threads;
    CHECK(within(secondsOf(kernel, rowMajorConfiguration(kernel, knobs)), 260e-6, 0.25));
  }
}

TEST_CASE("measured on an H200: sums of columns in clusters of blocks, and in too few blocks") {
  const auto sumOf = [](int64_t rows, int64_t columns) {
    KernelBuilder builder("sum", {{'j', rows}, {'i', columns}});
    const int x = builder.input("x", "ji");
    return builder.build(
        {builder.op("reduce", OperatorClass::normalization, {x}, "s", "i", "j", DType::f32)});
  };
  const Kernel kernel = sumOf(12288, 1024), wide = sumOf(12288, 4096);
  LoopKnobs knobs{.vectorAxis = i,
                  .vectorWidth = 4,
                  .laneAxis = i,
                  .reduction = ReductionMapping::clusterColumns,
                  .threads = 256,
                  .threadsPerRow = 32,
                  .blocksPerRow = 8};
  CHECK(within(secondsOf(kernel, rowMajorConfiguration(kernel, knobs)), 8.71e-6, 0.25));
  knobs.threads = 512, knobs.blocksPerRow = 4;
  CHECK(within(secondsOf(wide, rowMajorConfiguration(wide, knobs)), 25.6e-6, 0.25));
  knobs.reduction = ReductionMapping::blockColumns, knobs.blocksPerRow = 1;
  CHECK(within(secondsOf(kernel, rowMajorConfiguration(kernel, knobs)), 43.4e-6, 0.25));
  CHECK(within(bestSeconds(kernel), 8.7e-6, 0.25));
  CHECK(within(bestSeconds(wide), 25.6e-6, 0.25));
  CHECK(bestSeconds(kernel, findDevice("a100")) > bestSeconds(kernel));  // without clusters
}

TEST_CASE("MUE is the necessary bytes over time and peak") {
  const Cost cost{.seconds = 1e-3, .bytesMoved = 4'000'000'000, .bytesNecessary = 2'400'000'000};
  CHECK(memoryUsageEfficiency(cost, h200()) == Approx(2.4e12 / 4.8e12 * 100));
}

TEST_CASE("rotations are cheapest along the turned elements, where partners share their lines") {
  // 35.7 us where both lie with the turned elements innermost, 82.6 where one does, of an H100.
  KernelBuilder builder("rotary", {{'h', 12}, {'j', 128}, {'b', 242}, {'p', 64}});
  const int x = builder.input("x", "hjbp");
  const int y = builder.op("rotary", OperatorClass::elementwise, {x}, "y", "hjbp");
  builder.last().expression = rotaryExpression({.style = RotaryStyle::halved,
                                                .isShort = true,
                                                .dimension = 3,
                                                .position = 1,
                                                .rank = 4,
                                                .extent = 64,
                                                .turned = 64});
  const Kernel kernel = builder.build({y});
  const auto seconds = [&](const Layout &input, const LoopKnobs &knobs) {
    return secondsOf(kernel, {.inputs = {input}, .outputs = {rowMajor(4)}, .knobs = knobs});
  };
  const LoopKnobs along{.vectorAxis = 3, .vectorWidth = 8, .laneAxis = 3},
      across{.vectorAxis = 3, .vectorWidth = 8, .laneAxis = 2};
  Layout turned = rowMajor(4);
  turned.order = {3, 0, 1, 2};
  const double contiguous = seconds(rowMajor(4), along);
  CHECK(seconds(turned, across) > 1.5 * contiguous);
  // One element at a time has a frequency by itself.
  CHECK(seconds(rowMajor(4), {.vectorAxis = 3, .vectorWidth = 1, .laneAxis = 3}) > contiguous);
}
