// Loop kernels over packed tokens on the host, with no token, one, odd numbers of them, all and
// more, under every mapping of their sums: results are those of fp64, and what lies behind the last
// token is not read where every step asks, or not behind the step that has the last one.
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/UnusedTokens.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/emulate/Sampling.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleTokens.h"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace weft;
using weft::test::nonEmpty;

namespace {

constexpr double poison = std::numeric_limits<double>::quiet_NaN();

struct Subject {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted = {};
};

/// How many tokens a kernel reads of an operand that no mask makes zero, of `count`: whole vectors,
/// or whole steps of all threads.
int64_t tokensRead(const Subject &subject, int64_t count) {
  if (count < 1) return 0;
  const auto &knobs = subject.configuration.knobs.get<LoopKnobs>();
  int64_t together =
      knobs.vectorAxis == unusedTokens(subject.kernel).value().axis ? knobs.vectorWidth : 1;
  if (subject.emitted.text.find("tokenSteps") != std::string::npos)
    together *= int64_t(std::max(1, knobs.threadsPerRow)) * knobs.blocksPerRow;
  return (count + together - 1) / together * together;
}

/// `finite`: inputs of which nothing may be infinite behind the last token, since a mask of
/// another factor is all that makes these terms zero.
void check(const std::string &name, const std::vector<Kernel> &kernels, size_t configurations,
           const std::set<std::string> &finite, std::set<std::string> &seen,
           const LayoutConstraints &layouts = {}, const std::vector<LoopKnobs> &more = {}) {
  std::vector<Subject> subjects;
  std::vector<emulate::Source> sources;
  for (const Kernel &kernel : kernels) {
    std::vector<Configuration> drawn =
        emulate::sample(kernel, findDevice("h200"), layouts, configurations);
    for (const LoopKnobs &knobs : more)
      drawn.push_back(examples::rowMajorConfiguration(kernel, knobs));
    for (const Configuration &one : nonEmpty(drawn)) {
      subjects.push_back({kernel, one, codegen::emit(kernel, one, "sm_90a")});
      sources.push_back({subjects.back().emitted.text, subjects.back().emitted.entry});
      seen.insert(std::string(nameOf(one.knobs.get<LoopKnobs>().reduction)));
      for (const char *word :
           {"tokenSteps", "stepsInFlight", "_row[", "return;\n  }", "keptColumnsPaired"})
        if (sources.back().text.find(word) != std::string::npos) seen.insert(word);
    }
  }
  const emulate::HostLibrary library(name, sources);
  for (size_t n = 0; n < subjects.size(); ++n) {
    const Subject &subject = subjects[n];
    const Kernel &kernel = subject.kernel;
    const UnusedTokens unused = unusedTokens(kernel).value();
    const int64_t all = kernel.axes[size_t(unused.axis)].extent;
    // Offsets of a caller may be anything.
    for (const int64_t count : {int64_t(-3), int64_t(0), int64_t(1), all / 3 | 1, all, all + 5}) {
      INFO(count << " tokens, " << describe(kernel, subject.configuration.knobs) << "\n"
                 << subject.emitted.readable);
      const auto fillRest = [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
        for (size_t input = 0; input < kernel.inputs.size(); ++input) {
          const emulate::Tensor &tensor = *tensors[input];
          const Value &value = kernel.values[size_t(kernel.inputs[input])];
          const auto dimension = std::ranges::find(value.axes, unused.axis) - value.axes.begin();
          const int64_t end = finite.contains(value.name) ? tokensRead(subject, count) : count;
          tensor.forEach([&](std::span<const int64_t> at) {
            if (kernel.inputs[input] == unused.offsets)
              reference::storeElement(tensor.type, tensor.at(at), at[0] == 0 ? 0 : double(count));
            else if (dimension < std::ssize(value.axes) && at[size_t(dimension)] >= end)
              reference::storeElement(tensor.type, tensor.at(at), poison);
          });
        }
      };
      const auto restore = [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
        for (size_t input = 0; input < kernel.inputs.size(); ++input)
          if (finite.contains(kernel.values[size_t(kernel.inputs[input])].name))
            tensors[input]->fill(input);
      };
      emulate::checkEmitted(kernel, subject.configuration, subject.emitted, library.kernel(n),
                            subject.emitted.launch.grid, subject.emitted.launch.block, {}, fillRest,
                            restore);
    }
  }
}

Kernel exampleOf(const std::string &name, DType type, int64_t tokens, int64_t u = 21) {
  const examples::Extents extents{
      .b = 3, .j = tokens / 3, .k = 1, .h = 3, .p = 16, .i = 24, .u = u};
  for (const examples::Example &example : examples::loopExamples(type, extents, 8))
    if (example.name == name) return example.kernel;
  FAIL("no example " << name);
  return {};
}

/// s = sum over tokens and heads of what of x are tokens.
Kernel sumOverTokensAndHeads(int64_t tokens, DType type) {
  const samples::TokenExtents extents{.t = tokens, .sequences = 2};
  samples::KernelBuilder builder(
      "sum_over_tokens_and_heads",
      {{'h', 5}, {'n', extents.sequences + 1}, {'t', tokens}, {'w', 16}});
  const int x = builder.input("x", "thw", type),
            offsets = builder.input("offsets", "n", DType::i32);
  const int terms = samples::maskTokens(builder, x, offsets, extents, "terms", type, "thw");
  const int sum =
      builder.op("reduce", OperatorClass::normalization, {terms}, "sum", "w", "th", type);
  builder.last().attributes = {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{0, 1}}};
  return builder.build({terms, sum});
}

/// Sums of rows of tokens, behind which nothing reads.
Kernel unreadRowSums(int64_t tokens, DType type) {
  const samples::TokenExtents extents{.t = tokens, .sequences = 2};
  samples::KernelBuilder builder("unread_row_sums",
                                 {{'n', extents.sequences + 1}, {'t', tokens}, {'w', 40}});
  const int x = builder.input("x", "tw", type), offsets = builder.input("offsets", "n", DType::i32);
  const int terms = samples::maskTokens(builder, x, offsets, extents, "terms", type, "tw", true);
  const int sum =
      builder.op("reduce", OperatorClass::normalization, {terms}, "sum", "t", "w", type);
  builder.last().attributes = {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{1}}};
  return builder.build(
      {terms, samples::maskTokens(builder, sum, offsets, extents, "sums", type, "t", true)});
}

}  // namespace

TEST_CASE("sums over tokens end with the last one under every mapping") {
  std::set<std::string> seen;
  check("token_bias_gradient",
        {exampleOf("token_bias_gradient", DType::f16, 312),
         exampleOf("token_bias_gradient", DType::f32, 201)},
        14, {}, seen);
  check("token_norm_gradients",
        {exampleOf("token_norm_gradients", DType::f16, 312),
         exampleOf("token_norm_gradients", DType::bf16, 501)},
        14, {"x", "mean", "rstd"}, seen, {},
        // Few blocks of the grid, so that a column does not fit their registers.
        {{.vectorAxis = 2,
          .vectorWidth = 8,
          .laneAxis = 2,
          .reduction = ReductionMapping::gridColumns,
          .threads = 256,
          .threadsPerRow = 8,
          .blocksPerRow = 3}});
  for (const ReductionMapping mapping : reductionMappings)
    if (mapping != ReductionMapping::none) CHECK(seen.contains(std::string(nameOf(mapping))));
  CHECK(seen.contains("tokenSteps"));     // loops that end
  CHECK(seen.contains("stepsInFlight"));  // batches of steps that ask
  CHECK(seen.contains("_row["));          // rows in registers that do
}

TEST_CASE("sums over tokens and another axis end, whichever of both is the slower one") {
  std::set<std::string> ofTokens, ofHeads;
  const Kernel kernel = sumOverTokensAndHeads(120, DType::f16);
  const auto along = [&](std::vector<int> order) {
    LayoutConstraints layouts;
    Layout layout = rowMajor(3);
    layout.order = std::move(order);
    layouts.inputs = {layout, std::nullopt};
    layouts.outputs = {layout, std::nullopt};
    return layouts;
  };
  check("tokens_and_heads", {kernel}, 12, {}, ofTokens, along({0, 1, 2}));
  check("heads_and_tokens", {kernel}, 12, {}, ofHeads, along({1, 0, 2}));
  CHECK(ofTokens.contains("tokenSteps"));
  CHECK_FALSE(ofHeads.contains("tokenSteps"));
}

// Lanes that exchange words of draws must not part at the last token.
TEST_CASE("lanes share draws of dropout where all of their warp are at one token") {
  std::set<std::string> seen, parting;
  const auto columns = [](ReductionMapping mapping, int threadsPerRow, int blocks) {
    return LoopKnobs{.vectorAxis = 2,
                     .vectorWidth = 8,
                     .laneAxis = 2,
                     .reduction = mapping,
                     .threads = 256,
                     .threadsPerRow = threadsPerRow,
                     .blocksPerRow = blocks};
  };
  const Kernel kernel = exampleOf("token_bias_gradient", DType::f16, 48, 256);
  check("token_draws", {kernel}, 1, {}, seen, {},
        {columns(ReductionMapping::blockColumns, 8, 1),
         columns(ReductionMapping::gridColumns, 8, 3)});
  check("token_draws_apart", {kernel}, 1, {}, parting, {},
        {columns(ReductionMapping::warpColumns, 4, 1),
         columns(ReductionMapping::gridColumns, 16, 3)});
  CHECK(seen.contains("keptColumnsPaired"));
}

TEST_CASE("rows behind the last token are left out where their threads stay for others") {
  std::set<std::string> seen;
  check("token_row_sums",
        {exampleOf("token_row_sums", DType::f16, 63), exampleOf("token_row_sums", DType::f32, 63),
         unreadRowSums(61, DType::f16), unreadRowSums(64, DType::f32)},
        12, {}, seen);
  CHECK(seen.contains("warp"));
  CHECK(seen.contains("return;\n  }"));
}
