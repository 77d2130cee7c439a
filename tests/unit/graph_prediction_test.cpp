// The prediction of whole plans: what counts as found in L2, worked out by hand.
#include "kernel/Device.h"
#include "runtime/GraphPrediction.h"

#include <catch2/catch.hpp>

using namespace weft;
using namespace weft::runtime;

namespace {

/// A chain: kernel i reads tensor i and writes tensor i + 1, each of so many bytes in a buffer of its own, in 10 us.
Plan chain(const std::vector<int64_t> &bytes) {
  Plan plan;
  for (size_t i = 0; i < bytes.size(); ++i) plan.tensors.push_back({.name = "t" + std::to_string(i), .buffer = int(i), .bytes = bytes[i]});
  for (int i = 0; i + 1 < int(bytes.size()); ++i) plan.kernels.push_back({.family = "loop", .inputs = {i}, .outputs = {i + 1}, .source = "k.cu", .seconds = 10e-6});
  return plan;
}

/// An L2 that surely keeps what is less than 2 MB back and has lost what is 10 MB back; 1 MB a microsecond.
Device device() {
  Device device;
  device.l2Bytes = 10e6;
  device.copyBandwidth = 1e12;
  return device;
}

}  // namespace

TEST_CASE("the closer an input was written, the more of it is found in L2") {
  const GraphPrediction near = predictGraph(chain({1'000'000, 2'000'000, 1'000'000}), {0, 1}, device());
  CHECK(near.sumSeconds == Approx(20e-6));
  CHECK(near.reusedBytes == Approx(2e6));  // tensor 1; nobody left tensor 0 there
  CHECK(near.reuseSeconds == Approx(0.45 * 2e-6));
  CHECK(near.seconds() == Approx(20e-6 - 0.9e-6));
  CHECK(predictGraph(chain({1'000'000, 6'000'000, 1'000'000}), {0, 1}, device()).reusedBytes == Approx(3e6));  // half way
  CHECK(predictGraph(chain({1'000'000, 10'000'000, 1'000'000}), {0, 1}, device()).reusedBytes == 0);
}

TEST_CASE("what passes between pushes out") {
  Plan plan = chain({1'000'000, 1'000'000, 1'000'000});
  plan.kernels.push_back({.family = "loop", .inputs = {0, 2}, .outputs = {1}, .source = "k.cu", .seconds = 10e-6});
  // Tensors 1 and 2 in full; tensor 0 was read 3 MB before the end of its second reading.
  CHECK(predictGraph(plan, {0, 1, 2}, device()).reusedBytes == Approx(2e6 + 7e6 / 8));
  plan.tensors[2].bytes = 11'000'000;  // pushes tensor 0 out, and itself
  CHECK(predictGraph(plan, {0, 1, 2}, device()).reusedBytes == Approx(1e6));
}

TEST_CASE("views touch nothing, results over operands pass once") {
  Plan plan = chain({1'000'000, 1'000'000, 1'000'000});
  plan.kernels[0].source.clear();
  CHECK(predictGraph(plan, {0, 1}, device()).reusedBytes == 0);
  Plan inPlace = chain({1'000'000, 1'000'000, 1'000'000, 500'000});
  inPlace.tensors[2].buffer = 1;
  CHECK(predictGraph(inPlace, {0, 1, 2}, device()).reusedBytes == Approx(2e6));
}

TEST_CASE("nothing is found in the L2 of an unknown device") {
  CHECK(predictGraph(chain({1'000'000, 1'000'000, 1'000'000}), {0, 1}, Device{}).seconds() == Approx(20e-6));
}
