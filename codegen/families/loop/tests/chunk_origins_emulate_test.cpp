// Emitted kernels on chunks count coordinates from where the chunk starts, as fp64 does.
#include "kernel/ChunkOrigins.h"
#include "passes/configure/Families.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleCounting.h"

#include <catch2/catch.hpp>

using namespace weft;

namespace {

const std::map<char, int64_t> extents = {{'b', 2}, {'h', 2}, {'j', 12}, {'k', 16}, {'p', 8}};

/// Half of an axis, from the middle on.
Kernel secondHalf(const Kernel &whole, char letter) {
  Kernel chunk = whole;
  const AxisId axis =
      int(std::ranges::find(whole.axes, std::string(1, letter), &Axis::name) - whole.axes.begin());
  const int64_t half = whole.axes[size_t(axis)].extent / 2;
  chunk.axes[size_t(axis)].extent = half;
  for (BodyOp &op : test::nonEmpty(chunk.body))
    if (countsAlong(whole, op, axis)) REQUIRE(countFrom(whole, op, axis, half));
  return chunk;
}

/// Scores of queries and keys, and what a causal mask leaves of them.
Kernel maskedScores() {
  samples::KernelBuilder builder("scores", {{'h', 2}, {'j', 12}, {'k', 16}, {'p', 8}});
  const int q = builder.input("q", "hjp"), k = builder.input("keys", "hkp");
  const int gemm = builder.op("contract", OperatorClass::contraction, {q, k}, "gemm", "hjk", "p");
  builder.last().attributes = {{"spec", std::string("hjp,hkp->hjk")}};
  const int y = builder.op("mask", OperatorClass::elementwise, {gemm}, "y", "hjk");
  builder.last().attributes = {
      {"kind", std::string("causal")}, {"query", int64_t(1)}, {"key", int64_t(2)}};
  builder.compute(maskExpression({.key = 2, .query = 1, .shift = 4}));
  return builder.build({y});
}

/// The first row-major configuration of an emitted family.
void check(const std::vector<Kernel> &kernels) {
  std::vector<Configuration> configurations;
  std::vector<codegen::EmittedKernel> emitted;
  std::vector<emulate::Source> sources;
  for (const Kernel &kernel : kernels) {
    LayoutConstraints rows;
    for (const ValueId input : kernel.inputs)
      rows.inputs.emplace_back(rowMajor(kernel.values[size_t(input)].axes.size()));
    for (const ValueId output : kernel.outputs)
      rows.outputs.emplace_back(rowMajor(kernel.values[size_t(output)].axes.size()));
    std::optional<Configuration> chosen;
    forEachConfiguration(kernel, findDevice("a100"), rows, [&](const Configuration &one) {
      if (one.knobs.family().hasText()) chosen = one;
      return !chosen;
    });
    INFO(kernel.name);
    REQUIRE(chosen);
    configurations.push_back(*chosen);
    emitted.push_back(codegen::emit(kernel, *chosen, "sm_80"));
    sources.push_back({emitted.back().text, emitted.back().entry});
  }
  const emulate::HostLibrary library("chunk_origins", sources);
  const auto fill = [](size_t input, const emulate::Tensor &tensor) {
    if (tensor.type != DType::i32 || input == 0) return false;
    int64_t place = 0;
    tensor.forEach([&](std::span<const int64_t> at) {  // few segments, which several tokens share
      reference::storeElement(tensor.type, tensor.at(at), double(place++ / 3 % 3));
    });
    return true;
  };
  for (size_t n = 0; n < kernels.size(); ++n) {
    INFO(kernels[n].name << ", " << describe(kernels[n], configurations[n].knobs));
    emulate::checkEmitted(kernels[n], configurations[n], emitted[n], library.kernel(n),
                          emitted[n].launch.grid, emitted[n].launch.block, fill);
  }
}

}  // namespace

TEST_CASE("emitted masks, slopes and rotations count from where their chunk starts") {
  std::vector<Kernel> kernels;
  for (const auto &[name, whole] : test::nonEmpty(samples::countingKernels(extents)))
    for (const char axis : {'h', 'j'}) kernels.push_back(secondHalf(whole, axis));
  kernels.push_back(secondHalf(maskedScores(), 'j'));
  check(kernels);
}
