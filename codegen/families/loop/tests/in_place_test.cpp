// Which operand a result may lie over: only where every element is read by the thread that writes
// it, before it does.
#include "codegen/families/loop/InPlace.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/CoordinateExpressions.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;
using samples::KernelBuilder;

namespace {

const std::map<char, int64_t> extents = {{'h', 3}, {'j', 5}, {'k', 7}};

Configuration inOrder(const Kernel &kernel, const Knobs &knobs = LoopKnobs{}) {
  Configuration configuration{.inputs = {}, .outputs = {}, .knobs = knobs};
  for (const ValueId input : kernel.inputs)
    configuration.inputs.push_back(rowMajor(kernel.values[size_t(input)].axes.size()));
  for (const ValueId output : kernel.outputs)
    configuration.outputs.push_back(rowMajor(kernel.values[size_t(output)].axes.size()));
  return configuration;
}

using Positions = std::vector<size_t>;

}  // namespace

TEST_CASE("maps and rows lie over their operand") {
  const Kernel relu = samples::reluKernel(extents, "hjk"),
               softmax = samples::softmaxKernel(extents, "hjk");
  CHECK(overwritableInputs(relu, inOrder(relu)) == Positions{0});
  CHECK(overwritableInputs(softmax, inOrder(softmax)) == Positions{0});
}

TEST_CASE("rows of which the last is taken twice do not") {
  const Kernel softmax = samples::softmaxKernel(extents, "hjk");  // 15 rows
  LoopKnobs knobs{.vectorAxis = 2,
                  .laneAxis = 2,
                  .reduction = ReductionMapping::warp,
                  .threads = 64,
                  .threadsPerRow = 8};
  CHECK(overwritableInputs(softmax, inOrder(softmax, knobs)).empty());
  knobs.threadsPerRow = 32;  // a warp a row: those beyond the last leave
  CHECK(overwritableInputs(softmax, inOrder(softmax, knobs)) == Positions{0});
  const Kernel even = samples::softmaxKernel({{'h', 4}, {'j', 4}, {'k', 7}}, "hjk");
  knobs.threadsPerRow = 8;  // 16 rows
  CHECK(overwritableInputs(even, inOrder(even, knobs)) == Positions{0});
}

TEST_CASE("a result of another layout does not") {
  const Kernel relu = samples::reluKernel(extents, "hjk");
  Configuration configuration = inOrder(relu);
  configuration.outputs[0].order = {1, 0, 2};
  CHECK(overwritableInputs(relu, configuration).empty());
  configuration.inputs[0].order = {1, 0, 2};
  CHECK(overwritableInputs(relu, configuration) == Positions{0});
}

TEST_CASE("a result of another type does not") {
  KernelBuilder builder("cast", extents);
  const int x = builder.input("x", "hjk", DType::f32);
  const Kernel cast = builder.build(
      {builder.op("cast", OperatorClass::elementwise, {x}, "y", "hjk", "", DType::f16)});
  CHECK(overwritableInputs(cast, inOrder(cast)).empty());
}

TEST_CASE("of several operands, those of the result's shape") {
  KernelBuilder builder("bias_residual", extents);
  const int x = builder.input("x", "hjk"), bias = builder.input("bias", "k"),
            residual = builder.input("residual", "hjk");
  const int sum = builder.op("bias", OperatorClass::elementwise, {x, bias}, "sum", "hjk");
  const Kernel kernel = builder.build(
      {builder.op("residual", OperatorClass::elementwise, {sum, residual}, "y", "hjk")});
  CHECK(overwritableInputs(kernel, inOrder(kernel)) == Positions{0, 2});
}

TEST_CASE("a rotation takes the partner of its element, movement takes elements from elsewhere") {
  KernelBuilder builder("rotary", extents);
  Kernel rotary = builder.build(
      {builder.op("rotary", OperatorClass::elementwise, {builder.input("x", "hjk")}, "y", "hjk")});
  rotary.body[0].expression =
      rotaryExpression({.dimension = 2, .position = 1, .rank = 3, .extent = 7, .turned = 6});
  CHECK(overwritableInputs(rotary, inOrder(rotary)).empty());
  const Kernel identity = samples::identityKernel(extents, "hjk");
  CHECK(overwritableInputs(identity, inOrder(identity)).empty());
}

TEST_CASE("a second result of the shape may be stored before the operand is read again") {
  KernelBuilder builder("residual_softmax", extents);
  const int x = builder.input("x", "hjk"), y = builder.input("y", "hjk");
  const int sum = builder.op("residual", OperatorClass::elementwise, {x, y}, "sum", "hjk");
  const int out = builder.op("softmax", OperatorClass::normalization, {sum}, "out", "hjk", "k");
  const Kernel kernel = builder.build({out, sum});
  CHECK(overwritableInputs(kernel, inOrder(kernel)).empty());
}

TEST_CASE("a result that is stored before a later sum reads the operand again") {
  // log-sum-exp beside the sum that it is of: stored with the maximum, read again for the sum of
  // exponentials.
  KernelBuilder builder("sum_and_its_partition", extents);
  const int x = builder.input("x", "hjk"), y = builder.input("y", "hjk");
  const int sum = builder.op("residual", OperatorClass::elementwise, {x, y}, "sum", "hjk");
  const int maximum =
      builder.op("reduce", OperatorClass::normalization, {sum}, "maximum", "hj", "k");
  const int shifted =
      builder.op("sub", OperatorClass::elementwise, {sum, maximum}, "shifted", "hjk");
  const int exponential =
      builder.op("exp", OperatorClass::elementwise, {shifted}, "exponential", "hjk");
  const int total =
      builder.op("reduce", OperatorClass::normalization, {exponential}, "total", "hj", "k");
  KernelBuilder early = builder;
  const Kernel stored = early.build({sum, maximum, total});
  CHECK(overwritableInputs(stored, inOrder(stored)).empty());
  const Kernel last = builder.build({exponential, maximum, total});  // in the pass of its sum
  CHECK(overwritableInputs(last, inOrder(last)) == Positions{0, 1});
}

TEST_CASE("one pass of column sums lies over its operand") {
  KernelBuilder builder("residual_bias_gradient", extents);
  const int x = builder.input("x", "hjk"), y = builder.input("y", "hjk");
  const int sum = builder.op("residual", OperatorClass::elementwise, {x, y}, "sum", "hjk");
  const int bias = builder.op("reduce", OperatorClass::normalization, {sum}, "bias", "k", "hj");
  const Kernel kernel = builder.build({sum, bias});
  CHECK(overwritableInputs(kernel, inOrder(kernel)) == Positions{0, 1});
}

TEST_CASE("only the loop family") {
  const Kernel relu = samples::reluKernel(extents, "hjk");
  CHECK(overwritableInputs(relu, inOrder(relu, TransposeKnobs{})).empty());
}
