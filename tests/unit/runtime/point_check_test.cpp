// The check of what a GPU wrote finds what it exists to find, without a GPU: images are filled
// here, and broken.
#include "kernel/Error.h"
#include "kernel/ScoreBias.h"
#include "runtime/verify/KernelInputs.h"
#include "runtime/verify/PointCheck.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleTokens.h"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace weft;
using namespace weft::runtime;

namespace {

/// A kernel with inputs, and outputs as a flawless GPU would leave them.
struct Run {
  Kernel kernel;
  std::vector<TensorImage> inputs, outputs;

  explicit Run(Kernel given, std::vector<int> outputOrder = {}) : kernel(std::move(given)) {
    const std::vector<InputRule> rules = inputRules(kernel);
    for (size_t n = 0; n < kernel.inputs.size(); ++n) {
      inputs.emplace_back(kernel, kernel.inputs[n],
                          rowMajor(kernel.values[kernel.inputs[n]].axes.size()));
      fillInput(inputs.back(), rules[n], 3, n);
    }
    for (int value : kernel.outputs) {
      Layout layout = rowMajor(kernel.values[value].axes.size());
      if (!outputOrder.empty()) layout.order = outputOrder;
      outputs.emplace_back(kernel, value, layout);
      std::vector<reference::ElementReader> readers;
      for (const TensorImage &input : inputs)
        readers.push_back([&input](std::span<const int64_t> at) { return input.at(at); });
      reference::PointEvaluator points(kernel, readers, {});
      const std::vector<int64_t> shape = outputs.back().shape();
      outputs.back().fill([&](int64_t n) {
        std::vector<int64_t> at(shape.size());
        for (size_t d = shape.size(); d-- > 0; n /= shape[d]) at[d] = n % shape[d];
        return points.output(outputs.size() - 1, at).value;
      });
    }
  }
  CheckResult check(int64_t points = 4096) const {
    return checkOutputs(kernel, inputs, outputs, {.points = points, .seed = 1});
  }
};

Run softmax() {
  return Run(samples::softmaxKernel({{'b', 3}, {'j', 5}, {'k', 33}}, "bjk"), {2, 0, 1});
}

const TensorImage &inputOf(const Run &run, const std::string &name) {
  for (size_t n = 0; n < run.inputs.size(); ++n)
    if (run.kernel.values[size_t(run.kernel.inputs[n])].name == name) return run.inputs[n];
  throw Error::checkFailed("no input '{}'", name);
}

}  // namespace

TEST_CASE("an average that cancels may be off by what its operands are rounded by, and no more") {
  samples::KernelBuilder builder("average", {{'i', 512}});
  const int old = builder.input("old", "i", DType::f32),
            next = builder.input("next", "i", DType::f32);
  const int mean =
      builder.op("average", OperatorClass::elementwise, {old, next}, "mean", "i", "", DType::f32);
  builder.last().expression = Expression::parse("{0} + {weight} * ({1} - {0})");
  builder.last().attributes = {{"weight", 0.5}};
  Run run(builder.build({mean}));
  // As fp32 computes it, of operands whose average is near zero.
  const auto element = [&](size_t input, int64_t n) {
    return run.inputs[input].at(std::array<int64_t, 1>{n});
  };
  run.inputs[1].fill([&](int64_t n) { return -element(0, n) * (1 + double(n) * 0x1p-20); });
  const auto computed = [&](int64_t n) {
    const auto a = float(element(0, n)), b = float(element(1, n));
    return double(a + 0.5f * (b - a));
  };
  run.outputs[0].fill(computed);
  CHECK(run.check().passed());
  run.outputs[0].fill([&](int64_t n) { return computed(n) + std::abs(element(0, n)) * 0x1p-18; });
  CHECK_FALSE(run.check().passed());
}

TEST_CASE("inputs that a root or a divisor is computed of are positive, and no others") {
  samples::KernelBuilder builder("adam", {{'i', 64}});
  const auto input = [&](const char *name) { return builder.input(name, "i", DType::f32); };
  const int mean = input("mean"), square = input("square"), gradient = input("gradient"),
            epsilon = input("epsilon");
  const auto op = [&](const char *name, std::vector<ValueId> operands) {
    return builder.op(name, OperatorClass::elementwise, std::move(operands), name, "i", "",
                      DType::f32);
  };
  const int divisor =
      op("add", {op("sqrt", {op("average", {square, op("mul", {gradient, gradient})})}), epsilon});
  const int step = op("div", {mean, divisor});
  const std::vector<InputRule> rules = inputRules(builder.build({step}));
  using Kind = InputRule::Kind;
  CHECK(rules[0].kind == Kind::real);
  CHECK(rules[1].kind == Kind::positive);
  CHECK(rules[2].kind == Kind::real);  // its square is positive by itself
  CHECK(rules[3].kind == Kind::positive);
}

TEST_CASE("operands of a sum over tokens are zero behind the last one, and none before it") {
  const samples::TokenExtents extents{.t = 96, .i = 5, .u = 3, .sequences = 4};
  const Run run(samples::sumOverTokens(extents, DType::f16));
  const auto tokens =
      int64_t(inputOf(run, "offsets").at(std::array<int64_t, 1>{extents.sequences}));
  REQUIRE(tokens > 0);
  REQUIRE(tokens < extents.t);
  for (const auto &[name, columns] : {std::pair("d_y", extents.u), {"x", extents.i}}) {
    int64_t zerosBefore = 0;
    for (int64_t t = 0; t < extents.t; ++t)
      for (int64_t column = 0; column < columns; ++column) {
        const double element = inputOf(run, name).at(std::array{t, column});
        if (t >= tokens) CHECK(element == 0);
        else zerosBefore += element == 0;
      }
    CHECK(zerosBefore == 0);
  }
  CHECK(run.check().passed());
}

TEST_CASE("logarithms of sums know of a bias that grows towards later keys") {
  constexpr int64_t heads = 3, queries = 5, keys = 40;
  const auto addedTo = [&](bool isCausal) {
    samples::KernelBuilder builder("probabilities", {{'h', heads}, {'j', queries}, {'k', keys}});
    const ValueId scores = builder.input("scores", "hjk"),
                  logSums = builder.input("log_sums", "hj", DType::f32);
    ValueId biased = builder.op("alibi", OperatorClass::elementwise, {scores}, "biased", "hjk", "");
    const std::map<std::string, Attribute> places = {{"query", int64_t(1)}, {"key", int64_t(2)}};
    builder.last().attributes = places;
    builder.last().attributes["heads"] = std::vector<int64_t>{0};
    builder.last().attributes["steepness"] = 8.0;
    if (isCausal) {
      biased = builder.op("mask", OperatorClass::elementwise, {biased}, "masked", "hjk", "");
      builder.last().attributes = places;
      builder.last().attributes["kind"] = std::string("causal");
    }
    const ValueId result = builder.op("softmax_from_log_sums", OperatorClass::elementwise,
                                      {biased, logSums}, "probabilities", "hjk", "");
    return inputRules(builder.build({result}))[1].added;
  };
  const std::vector<double> added = addedTo(false);
  REQUIRE(added.size() == size_t(heads * queries));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t query = 0; query < queries; ++query) {
      double sum = 0;
      for (int64_t key = 0; key < keys; ++key)
        sum += std::exp(alibiSlope(head, heads, 8) * double(key - query - (keys - queries)));
      CHECK(added[size_t(head * queries + query)] == Approx(std::log(sum / double(keys))));
    }
  // Later keys are not seen: the largest bias is none.
  CHECK(addedTo(true).empty());
}

TEST_CASE("lengths of packed sequences are those that their offsets sum") {
  const samples::AttentionExtents extents{
      .b = 5, .h = 1, .j = 70, .k = 70, .p = 8, .w = 8, .tokens = 350};
  for (const bool isSaid : {true, false}) {
    const Run run(isSaid ? samples::endedAttention(extents, DType::f32, false)
                         : samples::packedAttention(extents, DType::f32, true));
    const TensorImage &lengths = inputOf(run, "lengths"), &offsets = inputOf(run, "offsets");
    int equal = 0;
    for (int64_t b = 0; b < 5; ++b)
      equal +=
          lengths.at(std::vector{b}) == offsets.at(std::vector{b + 1}) - offsets.at(std::vector{b})
              ? 1
              : 0;
    CHECK((equal == 5) == isSaid);
  }
}

TEST_CASE("bounds of segments are those of the segments that the kernel is given") {
  const Run run(samples::documentAttention(
      {.b = 2, .h = 1, .j = 300, .k = 1001, .p = 8, .w = 8, .hasBounds = true}, DType::f32));
  const TensorImage &segments = inputOf(run, "segments"), &bounds = inputOf(run, "bounds");
  int whole = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t tile = 0; tile < 32; ++tile) {
      double least = HUGE_VAL, greatest = -HUGE_VAL;
      for (int64_t k = tile * 32; k < std::min<int64_t>(tile * 32 + 32, 1001); ++k) {
        least = std::min(least, segments.at(std::vector<int64_t>{b, k}));
        greatest = std::max(greatest, segments.at(std::vector<int64_t>{b, k}));
      }
      CHECK(bounds.at(std::vector<int64_t>{b, tile, 0}) == least);
      CHECK(bounds.at(std::vector<int64_t>{b, tile, 1}) == greatest);
      whole += least == greatest;
    }
  // So that kernels skip tiles, and find some of one segment.
  CHECK(whole > 32);
  CHECK(whole < 64);
}

TEST_CASE("right outputs pass, every element") {
  const CheckResult result = softmax().check();
  INFO(describe(result));
  CHECK(result.passed());
  CHECK(result.points == 3 * 5 * 33);
  CHECK(result.worstRatio > 0.1);  // rounding to f16 takes up much of the bound
}

TEST_CASE("an element one unit in the last place off is found and named") {
  Run run = softmax();
  const std::vector<int64_t> place{1, 4, 32};
  run.outputs[0].set(place, run.outputs[0].at(place) * (1 + 0x1p-9));
  const CheckResult result = run.check();
  CHECK(result.failing == 1);
  REQUIRE(result.worst);
  CHECK(result.worst->coordinates == place);
  CHECK_THAT(describe(result), Catch::Contains("[1, 4, 32]"));
}

TEST_CASE("an element that nothing wrote is NaN and fails") {
  Run run = softmax();
  run.outputs[0].set(std::vector<int64_t>{0, 0, 0}, std::numeric_limits<double>::quiet_NaN());
  CHECK(run.check().failing == 1);
  TensorImage poison(run.kernel, run.kernel.outputs[0], rowMajor(3));
  CHECK(std::isnan(poison.at(std::vector<int64_t>{2, 1, 7})));
}

TEST_CASE(
    "writes outside the elements are found: before, behind and between those of a strided view") {
  for (const int64_t byte : {int64_t(0), TensorImage::margin - 1}) {
    Run run = softmax();
    run.outputs[0].bytes()[size_t(byte)] = std::byte{0};
    CHECK_FALSE(run.check().passed());
    CHECK_THAT(describe(run.check()), Catch::Contains("writes outside output 0"));
  }
  TensorImage view(DType::f32, {2, 3}, {5, 1}, 2);
  view.fill([](int64_t n) { return double(n); });
  CHECK(view.intactAround());
  CHECK(view.at(std::vector<int64_t>{1, 2}) == 5);
  view.bytes()[size_t(view.elementZero() + 3 * 4)] = std::byte{1};
  CHECK_FALSE(view.intactAround());
}

TEST_CASE(
    "samples of large outputs hold corners and whole runs, without repeats, and are the same every "
    "time") {
  const Kernel kernel = samples::softmaxKernel({{'b', 8}, {'j', 512}, {'k', 1024}}, "bjk");
  const auto places = samplePoints(kernel, 0, {.points = 2000, .seed = 9});
  CHECK(places.size() == 2000);
  const std::set<std::vector<int64_t>> set(places.begin(), places.end());
  CHECK(set.size() == places.size());
  for (int64_t b : {0, 7})
    for (int64_t j : {0, 511})
      for (int64_t k : {0, 1023}) CHECK(set.contains({b, j, k}));
  CHECK(places == samplePoints(kernel, 0, {.points = 2000, .seed = 9}));
  CHECK(places != samplePoints(kernel, 0, {.points = 2000, .seed = 10}));
}

TEST_CASE("elements that need long separate sums are fewer, but never none") {
  const Kernel gemm =
      samples::contractKernel({{'i', 1024}, {'k', 65536}, {'n', 1024}}, "ik", "kn", "in");
  const size_t count = samplePoints(gemm, 0, {.points = 100000, .seed = 1}).size();
  CHECK(count == (1 << 24) / 65536);
}

TEST_CASE("a GEMM in f16 is held to its bound") {
  Run run(samples::contractKernel({{'i', 7}, {'k', 65}, {'n', 9}}, "ik", "kn", "in"));
  CHECK(run.check().passed());
  run.outputs[0].set(std::vector<int64_t>{6, 8},
                     run.outputs[0].at(std::vector<int64_t>{6, 8}) + 0.05);
  CHECK(run.check().failing == 1);
}
