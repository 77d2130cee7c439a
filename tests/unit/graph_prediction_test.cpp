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

/// An L2 of which 4 MB hold on to data; 1 MB a microsecond.
Device device() {
  Device device;
  device.l2Bytes = 10e6;
  device.copyBandwidth = 1e12;
  return device;
}

}  // namespace

TEST_CASE("an input is found in L2 if it and all that passed since fit") {
  const GraphPrediction fits = predictGraph(chain({1'000'000, 3'000'000, 1'000'000}), {0, 1}, device());
  CHECK(fits.sumSeconds == Approx(20e-6));
  CHECK(fits.reusedBytes == 3'000'000);  // tensor 1; nobody left tensor 0 there
  CHECK(fits.reuseSeconds == Approx(0.7 * 3e-6));
  CHECK(fits.transitionSeconds == Approx(0.1e-6));
  CHECK(fits.seconds() == Approx(20e-6 - 2.1e-6 + 0.1e-6));
  CHECK(predictGraph(chain({1'000'000, 5'000'000, 1'000'000}), {0, 1}, device()).reusedBytes == 0);
}

TEST_CASE("what passes between pushes out") {
  Plan plan = chain({1'000'000, 1'000'000, 1'000'000});
  plan.kernels.push_back({.family = "loop", .inputs = {0, 2}, .outputs = {1}, .source = "k.cu", .seconds = 10e-6});
  CHECK(predictGraph(plan, {0, 1, 2}, device()).reusedBytes == 3'000'000);
  plan.tensors[2].bytes = 4'000'000;  // pushes tensor 0 out, and reading that again pushes out a part of it
  CHECK(predictGraph(plan, {0, 1, 2}, device()).reusedBytes == 1'000'000);
}

TEST_CASE("views are no launches, results over operands pass once") {
  Plan plan = chain({1'000'000, 1'000'000, 1'000'000});
  plan.kernels[0].source.clear();
  CHECK(predictGraph(plan, {0, 1}, device()).transitionSeconds == 0);
  Plan inPlace = chain({1'000'000, 2'000'000, 2'000'000, 1'000'000});
  inPlace.tensors[2].buffer = 1;
  CHECK(predictGraph(inPlace, {0, 1, 2}, device()).reusedBytes == 4'000'000);
}
