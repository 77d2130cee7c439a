// The prediction of whole plans: what counts as found in L2, worked out by hand.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Device.h"
#include "plan/GraphPrediction.h"

#include <catch2/catch.hpp>

using namespace weft;

namespace {

PlanTensor tensor(int number, int buffer, int64_t bytes) {
  return {.name = "t" + std::to_string(number),
          .logical = {},
          .dtype = DType::f16,
          .axes = {"x"},
          .extents = {bytes / 2},
          .order = {0},
          .strides = {1},
          .role = TensorRole::temporary,
          .buffer = buffer,
          .bytes = bytes};
}

/// In 10 us.
PlanKernel kernel(const std::vector<int> &inputs, int output) {
  PlanKernel kernel;
  kernel.family = loopFamily;
  kernel.inputs = inputs;
  kernel.outputs = {output};
  kernel.seconds = 10e-6;
  return kernel;
}

/// A chain: kernel i reads tensor i and writes tensor i + 1, each of so many bytes in a separate
/// buffer, in 10 us.
Plan chain(const std::vector<int64_t> &bytes) {
  Plan plan;
  for (size_t i = 0; i < bytes.size(); ++i)
    plan.tensors.push_back(tensor(int(i), int(i), bytes[i]));
  for (int i = 0; i + 1 < int(bytes.size()); ++i) plan.kernels.push_back(kernel({i}, i + 1));
  return plan;
}

/// An L2 that surely keeps what is less than 5 MB back and has lost what is 11 MB back; 1 MB a
/// microsecond.
Device device() {
  Device device;
  device.l2Bytes = 10e6;
  device.copyBandwidth = 1e12;
  return device;
}

}  // namespace

TEST_CASE("the closer an input was written, the more of it is found in L2") {
  const GraphPrediction near =
      predictGraph(chain({1'000'000, 2'000'000, 1'000'000}), {0, 1}, device());
  CHECK(near.sumSeconds == Approx(20e-6));
  CHECK(near.reusedBytes == Approx(2e6));  // tensor 1; nobody left tensor 0 there
  CHECK(near.reuseSeconds == Approx(0.65 * 2e-6));
  CHECK(near.seconds() == Approx(20e-6 - 1.3e-6));
  CHECK(predictGraph(chain({1'000'000, 8'000'000, 1'000'000}), {0, 1}, device()).reusedBytes ==
        Approx(4e6));  // half way
  CHECK(predictGraph(chain({1'000'000, 11'000'000, 1'000'000}), {0, 1}, device()).reusedBytes == 0);
}

TEST_CASE("what passes between pushes out") {
  Plan plan = chain({1'000'000, 1'000'000, 6'000'000});
  plan.kernels.push_back(kernel({0, 2}, 1));
  // Tensor 1 in full; tensor 0 was read 8 MB before the end of its second reading, tensor 2 written
  // 7 MB before the end of its reading.
  CHECK(predictGraph(plan, {0, 1, 2}, device()).reusedBytes ==
        Approx(1e6 + 1e6 * 3 / 6 + 6e6 * 4 / 6));
  plan.tensors[2] = tensor(2, 2, 11'000'000);  // pushes tensor 0 out, and itself
  CHECK(predictGraph(plan, {0, 1, 2}, device()).reusedBytes == Approx(1e6));
}

TEST_CASE("views touch nothing, results over operands pass once") {
  Plan plan = chain({1'000'000, 1'000'000, 1'000'000});
  plan.kernels[0].family = viewFamily;
  CHECK(predictGraph(plan, {0, 1}, device()).reusedBytes == 0);
  Plan inPlace = chain({1'000'000, 1'000'000, 1'000'000, 500'000});
  inPlace.tensors[2].buffer = 1;
  CHECK(predictGraph(inPlace, {0, 1, 2}, device()).reusedBytes == Approx(2e6));
  CHECK(predictGraph(inPlace, {0, 1, 2}, device()).overwrittenBytes ==
        0);  // an operand's time over its place is in what was fitted
}

TEST_CASE("nothing is found in the L2 of an unknown device") {
  CHECK(predictGraph(chain({1'000'000, 1'000'000, 1'000'000}), {0, 1}, Device{}).seconds() ==
        Approx(20e-6));
}

TEST_CASE(
    "parts of a tensor are found where the whole was left, and the whole where its parts were") {
  Plan plan;  // one kernel writes 1 MB, two read half of it each and write a half, one reads the
              // whole of those
  plan.tensors = {tensor(0, 0, 100'000), tensor(1, 1, 1'000'000), tensor(2, 1, 500'000),
                  tensor(3, 1, 500'000), tensor(4, 2, 100'000),   tensor(5, 2, 50'000),
                  tensor(6, 2, 50'000),  tensor(7, 3, 100'000)};
  plan.tensors[3].offset = 250'000;
  plan.tensors[6].offset = 25'000;
  plan.kernels = {kernel({0}, 1), kernel({2}, 5), kernel({3}, 6), kernel({4}, 7)};
  CHECK(predictGraph(plan, {0}, device()).reusedBytes == 0);
  CHECK(predictGraph(plan, {0, 1}, device()).reusedBytes == Approx(5e5));
  CHECK(predictGraph(plan, {0, 1, 2}, device()).reusedBytes == Approx(1e6));
  CHECK(predictGraph(plan, {0, 1, 2, 3}, device()).reusedBytes == Approx(1.1e6));
  CHECK(predictGraph(plan, {0, 1, 2, 3}, device()).overwrittenBytes == 0);
  CHECK(predictGraph(plan, {1, 2}, device()).reusedBytes == 0);  // the second half is not the first
}

TEST_CASE("a part over the part before it never goes to DRAM") {
  Plan plan;  // 1 MB written, read, and written again at the same place
  plan.tensors = {tensor(0, 0, 500'000), tensor(1, 1, 1'000'000), tensor(2, 2, 500'000),
                  tensor(3, 3, 1'000'000)};
  plan.memoryPlan = {{.buffer = 0, .offset = 0},
                     {.buffer = 1, .offset = 1'000'448},
                     {.buffer = 2, .offset = 500'224},
                     {.buffer = 3, .offset = 1'000'448}};
  plan.kernels = {kernel({0}, 1), kernel({1}, 2), kernel({2}, 3)};
  const GraphPrediction prediction = predictGraph(plan, {0, 1, 2}, device());
  CHECK(prediction.reusedBytes == Approx(1.5e6));
  CHECK(prediction.overwrittenBytes == Approx(1e6));
  CHECK(prediction.reuseSeconds == Approx(0.65 * 1.5e-6 + 0.1 * 1e-6));
}

namespace {

/// Two slices of two kernels each, of 10 us, which keep such a share of the device busy.
Plan twoSlices(double share) {
  Plan plan;
  plan.concurrent = true;
  for (int slice = 0; slice < 2; ++slice) {
    for (int n = 0; n < 3; ++n) plan.tensors.push_back(tensor(3 * slice + n, 3 * slice + n, 2));
    for (int n = 0; n < 2; ++n) {
      plan.kernels.push_back(kernel({3 * slice + n}, 3 * slice + n + 1));
      plan.kernels.back().chunk = PlanChunk{.region = n,
                                            .axis = "b",
                                            .start = slice,
                                            .size = 1,
                                            .isSlice = true,
                                            .deviceShare = share};
      if (n == 1) plan.kernels.back().after = {2 * slice};
    }
  }
  return plan;
}

}  // namespace

TEST_CASE("slices that leave room take as long as one of them, others as long as all") {
  const double path = 1.8e-6;
  const auto overlap = [](const Plan &plan) { return predictGraph(plan, Device{}).overlapSeconds; };
  CHECK(overlap(twoSlices(0.5)) == Approx(20e-6 - path));
  CHECK(overlap(twoSlices(0.75)) == Approx(40e-6 - 1.5 * 20e-6 - path));
  CHECK(overlap(twoSlices(1)) == Approx(-path));
  Plan uneven = twoSlices(0.75);  // alone for its last 10 us, the second slice runs at full speed
  uneven.kernels[3].seconds = 20e-6;
  CHECK(overlap(uneven) == Approx(50e-6 - 1.5 * 20e-6 - 10e-6 - path));
  Plan inOrder = twoSlices(0.5);
  inOrder.concurrent = false;
  CHECK(overlap(inOrder) == 0);
  Plan behind = twoSlices(0.5);  // a kernel of the whole that waits for both
  behind.tensors.push_back(tensor(6, 6, 2));
  behind.kernels.push_back(kernel({2, 5}, 6));
  behind.kernels.back().after = {1, 3};
  CHECK(predictGraph(behind, Device{}).seconds() == Approx(30e-6 + path));
}
