// Kernels in chunks: attention's scores a few heads at a time, with the same results.
#include "codegen/Emit.h"
#include "codegen/SourceHash.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ChunkOrigins.h"
#include "kernel/Error.h"
#include "kernel/VisibleWork.h"
#include "kernel/reference/PointEvaluator.h"
#include "passes/configure/Families.h"
#include "passes/decide/ChunkConfigurations.h"
#include "passes/decide/ChunkSpace.h"
#include "plan/Buffers.h"
#include "plan/PlanChunks.h"
#include "plan/PlanConfiguration.h"
#include "plan/PlanLiveness.h"
#include "plan/PlanMemory.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleCounting.h"
#include "tests/unit/samples/SampleKernels.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tools/driver/Emission.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::driver;

namespace {

bool ofOlderText(const ChosenKernel &chosen) { return isOfOlderText(chosen, "sm_90a"); }

void runInChunks(PlanDraft &draft, const decision::Chunking &chunks) {
  draft = decision::draftInChunks(draft, chunks);
}

const std::map<char, int64_t> extents = {{'b', 2},  {'h', 6}, {'j', 32},
                                         {'k', 32}, {'p', 8}, {'w', 8}};

std::map<char, int64_t> only(const std::string &letters) {
  std::map<char, int64_t> some;
  for (const char letter : letters) some[letter] = extents.at(letter);
  return some;
}

/// Kernels with any configuration each, on tensors that are row-major unless said.
class HandWrittenPlan : public PlanDraft {
public:
  /// Packed and checked. Returns the workspace.
  int64_t finish(bool isConcurrent = false) {
    planned.plan.concurrent = isConcurrent;
    assignBuffers(planned.plan, viewOf, std::vector<std::vector<int>>(planned.kernels.size()));
    orderKernels(planned.plan);
    planned.plan.entryPoints.clear();
    for (size_t kernel = 0; kernel < planned.plan.kernels.size(); ++kernel)
      planned.plan.entryPoints[EntryPointKind::forward].push_back(int(kernel));
    REQUIRE_NOTHROW(verify(planned.plan, "plan.json"));
    return planned.plan.workspaceBytes;
  }

protected:
  explicit HandWrittenPlan(const CostModel &prices, const std::map<char, int64_t> &sizes)
      : prices(prices), sizes(sizes) {}
  int tensor(const std::string &name, const std::string &letters, TensorRole role,
             DType dtype = DType::f16, std::string order = "") {
    if (order.empty()) order = letters;  // slowest first
    PlanTensor tensor{.name = name,
                      .logical = name,
                      .dtype = dtype,
                      .axes = {},
                      .extents = {},
                      .order = {},
                      .strides = {},
                      .role = role,
                      .buffer = -1,
                      .offset = 0,
                      .bytes = dtype == DType::f32 ? 4 : 2};
    for (const char letter : letters) {
      tensor.axes.emplace_back(1, letter);
      tensor.order.push_back(int(letters.find(order[tensor.extents.size()])));
      tensor.extents.push_back(sizes.at(letter));
      tensor.bytes *= sizes.at(letter);
    }
    tensor.strides = stridesOf(Layout{.order = tensor.order}, tensor.extents);
    planned.plan.tensors.push_back(tensor);
    return int(planned.plan.tensors.size()) - 1;
  }

  void add(Kernel kernel, const std::vector<int> &inputs, const std::vector<int> &outputs) {
    PlanKernel entry;
    entry.name = kernel.name = fmt::format("k{}", planned.kernels.size());
    entry.inputs = inputs;
    entry.outputs = outputs;
    entry.inputLayouts.assign(inputs.size(), NamedLayout());
    entry.outputLayouts.assign(outputs.size(), NamedLayout());
    ChosenKernel chosen{
        .kernel = kernel, .configuration = {}, .cost = {}, .proposal = {}, .graphOps = {}};
    LayoutConstraints constraints;
    for (const int input : inputs)
      constraints.inputs.emplace_back(Layout{.order = planned.plan.tensors[size_t(input)].order});
    for (const int output : outputs)
      constraints.outputs.emplace_back(Layout{.order = planned.plan.tensors[size_t(output)].order});
    forEachConfiguration(kernel, prices.device(), constraints, [&](const Configuration &candidate) {
      chosen.configuration = candidate;
      return false;
    });
    REQUIRE(chosen.configuration.outputs.size() == outputs.size());
    entry.family = chosen.configuration.knobs.family();
    entry.knobs = planKnobs(chosen.configuration.knobs, kernel);
    planned.plan.kernels.push_back(std::move(entry));
    planned.kernels.push_back(std::move(chosen));
  }

private:
  const CostModel &prices;
  const std::map<char, int64_t> sizes;
};

/// q k -> scores -> softmax -> with v -> out -> relu -> y.
class Attention : public HandWrittenPlan {
public:
  explicit Attention(const CostModel &prices) : HandWrittenPlan(prices, extents) {
    const int q = tensor("q", "bhjp", TensorRole::argument),
              k = tensor("k", "bhkp", TensorRole::argument),
              v = tensor("v", "bhkw", TensorRole::argument);
    const int scores = tensor("scores", "bhjk", TensorRole::temporary),
              weights = tensor("weights", "bhjk", TensorRole::temporary);
    const int out = tensor("out", "bhjw", TensorRole::temporary),
              y = tensor("y", "bhjw", TensorRole::result);
    add(samples::contractKernel(only("bhjkp"), "bhjp", "bhkp", "bhjk"), {q, k}, {scores});
    add(samples::softmaxKernel(only("bhjk"), "bhjk"), {scores}, {weights});
    add(samples::contractKernel(only("bhjkw"), "bhjk", "bhkw", "bhjw"), {weights, v}, {out});
    add(samples::reluKernel(only("bhjw"), "bhjw"), {out}, {y});
    viewOf.assign(planned.plan.tensors.size(), -1);
  }
};

/// The same with a softmax in sub-vectors of 64 keys: q k -> exponentials, maxima, sums -> factors
/// -> scaled, with v -> out -> relu -> y.
class DecomposedAttention : public HandWrittenPlan {
public:
  explicit DecomposedAttention(const CostModel &prices) : HandWrittenPlan(prices, decomposed) {
    const samples::ScoreExtents scores{.b = 2, .h = 6, .j = 32, .k = 128, .p = 64, .length = 64};
    const int q = tensor("q", "phbj", TensorRole::argument),
              k = tensor("k", "phbk", TensorRole::argument),
              v = tensor("v", "phbk", TensorRole::argument);
    const int exponentials = tensor("exponentials", "hbjk", TensorRole::temporary),
              maxima = tensor("maxima", "hbjn", TensorRole::temporary, DType::f32, "hbnj");
    const int sums = tensor("sums", "hbjn", TensorRole::temporary, DType::f32, "hbnj"),
              factors = tensor("factors", "hbjn", TensorRole::temporary, DType::f32);
    const int out = tensor("out", "hbjp", TensorRole::temporary),
              y = tensor("y", "hbjp", TensorRole::result);
    add(samples::scoresLocalSoftmax(scores, DType::f16, false), {q, k},
        {exponentials, maxima, sums});
    samples::KernelBuilder reduce("reduce_subvectors", {{'h', 6}, {'b', 2}, {'j', 32}, {'n', 2}});
    const int m = reduce.input("maxima", "hbjn", DType::f32),
              d = reduce.input("sums", "hbjn", DType::f32);
    const int f = reduce.op("reduce_subvectors", OperatorClass::normalization, {m, d}, "factors",
                            "hbjn", "n", DType::f32);
    reduce.last().attributes = {{"axis", int64_t(3)}};
    add(reduce.build({f}), {maxima, sums}, {factors});
    const samples::PrologueExtents context{.b = 2, .h = 6, .j = 32, .k = 128, .p = 64};
    add(samples::recomposedRows(context, DType::f16, 64, false), {exponentials, factors, v}, {out});
    add(samples::reluKernel({{'h', 6}, {'b', 2}, {'j', 32}, {'p', 64}}, "hbjp"), {out}, {y});
    viewOf.assign(planned.plan.tensors.size(), -1);
  }

private:
  static inline const std::map<char, int64_t> decomposed = {{'b', 2},   {'h', 6}, {'j', 32},
                                                            {'k', 128}, {'n', 2}, {'p', 64}};
};

std::string rejectionOf(const std::function<void()> &action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("scores in chunks take a part of the memory") {
  const auto prices = analyticCostModel(findDevice("h200"));
  Attention whole(*prices);
  const int64_t scores = whole.planned.plan.tensors[3].bytes;
  CHECK(whole.finish() >= 2 * scores);  // scores and weights; in place is not allowed here
  const int count = GENERATE(2, 6, 12);
  Attention chunks(*prices);
  for (PlanTensor &tensor : chunks.planned.plan.tensors)
    tensor.nextOf = "before", tensor.masterOf = "copy";
  const auto rejected = [&] { runInChunks(chunks, {.count = count, .prices = prices.get()}); };
  if (count == 12) {  // neither 2 batches nor 6 heads
    CHECK_THAT(rejectionOf(rejected), Catch::Contains("no plan in 12 chunks") &&
                                          Catch::Contains("along b") && Catch::Contains("along h"));
    CHECK(chunks.planned.kernels.size() == 4);
    return;
  }
  rejected();
  const Plan &plan = chunks.planned.plan;
  REQUIRE(plan.kernels.size() == size_t(3 * count + 1));
  REQUIRE(chunks.planned.kernels.size() == plan.kernels.size());
  std::set<std::string> names;
  for (int chunk = 0; chunk < count; ++chunk)
    for (int n = 0; n < 3; ++n) {
      const PlanKernel &kernel = plan.kernels[size_t(3 * chunk + n)];
      REQUIRE(kernel.chunk);
      CHECK(kernel.chunk->region == n);
      CHECK(kernel.chunk->axis == (count == 2 ? "b" : "h"));
      CHECK(kernel.chunk->start == chunk);
      CHECK(kernel.chunk->size == 1);
      CHECK(names.insert(kernel.name).second);
      const Kernel again = onChunk(whole.planned.kernels[size_t(n)].kernel, kernel.chunk->axis,
                                   kernel.chunk->start, kernel.chunk->size);
      CHECK(again.axes == chunks.planned.kernels[size_t(3 * chunk + n)].kernel.axes);
    }
  for (const PlanTensor &tensor : nonEmpty(plan.tensors)) {  // relations are of whole tensors
    CHECK(tensor.nextOf.empty() == !tensor.chunkOf.empty());
    CHECK(tensor.masterOf.empty() == !tensor.chunkOf.empty());
  }
  for (PlanTensor &tensor : chunks.planned.plan.tensors)
    tensor.nextOf.clear(), tensor.masterOf.clear();
  CHECK_FALSE(plan.kernels.back().chunk);
  REQUIRE(plan.notes.size() == 1);
  CHECK_THAT(plan.notes.front().text,
             Catch::StartsWith(fmt::format("'scores' is computed in {} chunks", count)));
  CHECK(chunks.finish() <
        2 * scores / count +
            3 * scores / 4);  // of `out`, a quarter as large as the scores, the whole
}

TEST_CASE("chunks that another plan configured before are configured alike") {
  const auto prices = analyticCostModel(findDevice("h200"));
  decision::ChunkConfigurations known;
  const auto planInChunks = [&](int count, decision::ChunkConfigurations *shared) {
    Attention chunks(*prices);
    for (ChosenKernel &kernel : chunks.planned.kernels) kernel.candidateName = kernel.kernel.name;
    runInChunks(chunks, {.count = count, .prices = prices.get(), .known = shared});
    chunks.finish();
    return chunks.planned;
  };
  for (const int count : {2, 6, 2}) {
    const PlannedKernels alone = planInChunks(count, nullptr), shared = planInChunks(count, &known);
    REQUIRE(shared.kernels.size() == alone.kernels.size());
    for (size_t kernel = 0; kernel < alone.kernels.size(); ++kernel) {
      CHECK(shared.kernels[kernel].configuration == alone.kernels[kernel].configuration);
      CHECK(shared.plan.kernels[kernel].seconds == alone.plan.kernels[kernel].seconds);
    }
    CHECK(shared.plan.predictedSeconds == alone.plan.predictedSeconds);
  }
}

TEST_CASE("statistics of a decomposed softmax are there in chunks with their exponentials") {
  const auto prices = analyticCostModel(findDevice("h200"));
  DecomposedAttention chunks(*prices);
  runInChunks(chunks, {.count = 3, .prices = prices.get()});
  const Plan &plan = chunks.planned.plan;
  REQUIRE(plan.kernels.size() == 3 * 3 + 1);
  for (int chunk = 0; chunk < 3; ++chunk)
    for (int n = 0; n < 3; ++n) {
      const PlanKernel &kernel = plan.kernels[size_t(3 * chunk + n)];
      REQUIRE(kernel.chunk);
      CHECK((kernel.chunk->region == n && kernel.chunk->axis == "h" &&
             kernel.chunk->start == 2 * chunk && kernel.chunk->size == 2));
    }
  for (const PlanTensor &tensor : nonEmpty(plan.tensors))
    for (const char *inner : {"exponentials", "maxima", "sums", "factors"}) {
      CHECK(tensor.name != inner);
      if (tensor.name.starts_with(inner)) CHECK(tensor.extents[0] == 2);
    }
  CHECK_THAT(plan.notes.front().text,
             Catch::StartsWith("'exponentials' is computed in 3 chunks along "
                               "h, one at a time; in chunks run k0, k1, k2"));
  DecomposedAttention whole(*prices);
  CHECK(chunks.finish() < whole.finish() / 2);
}

TEST_CASE("no chunks where one of the statistics is needed as a whole, or by others") {
  const auto prices = analyticCostModel(findDevice("h200"));
  const auto rejected = [&](const std::function<void(DecomposedAttention &)> &change) {
    DecomposedAttention attention(*prices);
    change(attention);
    const size_t before = attention.planned.kernels.size();
    const std::string reason =
        rejectionOf([&] { runInChunks(attention, {.count = 2, .prices = prices.get()}); });
    CHECK(attention.planned.kernels.size() == before);
    return reason;
  };
  const auto tensorOf = [](DecomposedAttention &attention,
                           const std::string &name) -> PlanTensor & {
    return *std::ranges::find(attention.planned.plan.tensors, name, &PlanTensor::name);
  };
  CHECK_THAT(rejected([&](DecomposedAttention &attention) {
               tensorOf(attention, "maxima").role = TensorRole::result;
             }),
             Catch::Contains("'maxima' is needed as a whole"));
  CHECK_THAT(rejected([&](DecomposedAttention &attention) {
               attention.planned.plan.kernels[3].inputs.push_back(
                   attention.planned.plan.kernels[1].inputs[1]);
             }),
             Catch::Contains("'sums' has 2 readers"));
  CHECK_THAT(rejected([&](DecomposedAttention &attention) {
               std::vector<int> &inputs = attention.planned.plan.kernels[3].inputs;
               inputs.push_back(attention.planned.plan.kernels[1].inputs[1]);
               attention.planned.plan.kernels[1].inputs.pop_back();
             }),
             Catch::Contains("'sums' is read behind 'k2'"));
}

TEST_CASE("chunks write every element of the whole once") {
  const auto prices = analyticCostModel(findDevice("h200"));
  const int count = GENERATE(2, 6);  // in 3, two heads of each batch: no batch of one stride
  Attention chunks(*prices);
  runInChunks(chunks, {.count = count, .prices = prices.get()});
  chunks.finish();
  const Plan &plan = chunks.planned.plan;
  const PlanTensor &out = *std::ranges::find(plan.tensors, "out", &PlanTensor::name);
  std::multiset<int64_t> written;
  for (const PlanKernel &kernel : plan.kernels) {
    const PlanTensor &chunk = plan.tensors[size_t(kernel.outputs.front())];
    if (chunk.buffer != out.buffer) continue;
    for (int64_t b = 0; b < chunk.extents[0]; ++b)
      for (int64_t h = 0; h < chunk.extents[1]; ++h)
        for (int64_t j = 0; j < chunk.extents[2]; ++j)
          for (int64_t w = 0; w < chunk.extents[3]; ++w)
            written.insert(chunk.offset + b * chunk.strides[0] + h * chunk.strides[1] +
                           j * chunk.strides[2] + w * chunk.strides[3]);
  }
  REQUIRE(written.size() == size_t(out.bytes / 2));
  CHECK(std::set<int64_t>(written.begin(), written.end()).size() == written.size());
  CHECK(*written.rbegin() == out.bytes / 2 - 1);
}

TEST_CASE("slices share no memory that they write, and none waits for another") {
  const auto prices = analyticCostModel(findDevice("h200"));
  const int count = GENERATE(2, 6);  // slices of `out` lie interleaved along h
  Attention whole(*prices), chunks(*prices), slices(*prices);
  const int64_t wholeBytes = whole.finish();
  runInChunks(chunks, {.count = count, .prices = prices.get()});
  const int64_t chunkBytes = chunks.finish();
  for (ChosenKernel &kernel : slices.planned.kernels)
    kernel.cost = prices->cost(kernel.kernel, kernel.configuration);
  runInChunks(slices, {.count = count, .prices = prices.get(), .isPipelined = true});
  const int64_t sliceBytes = slices.finish(true);
  CHECK(chunkBytes < sliceBytes);
  CHECK(sliceBytes <= 2 * wholeBytes);
  const Plan &plan = slices.planned.plan;
  REQUIRE(plan.kernels.size() == size_t(3 * count + 1));
  CHECK_THAT(plan.notes.front().text,
             Catch::StartsWith(fmt::format("'scores' is computed in {} slices", count)));
  const PlanMemory memory(plan);
  const KernelOrder order(plan);
  std::vector<std::pair<int64_t, MemoryRange>> temporaries;  // by the start of their slice
  for (size_t later = 0; later < plan.kernels.size(); ++later) {
    const PlanKernel &kernel = plan.kernels[later];
    if (!kernel.chunk) continue;
    CHECK(
        (kernel.chunk->isSlice && kernel.chunk->deviceShare > 0 && kernel.chunk->deviceShare < 1));
    const PlanTensor &output = plan.tensors[size_t(kernel.outputs.front())];
    if (!output.name.starts_with("out"))
      temporaries.emplace_back(kernel.chunk->start, memory.rangeOf(output));
    for (size_t earlier = 0; earlier < later; ++earlier)
      if (plan.kernels[earlier].chunk->start != kernel.chunk->start)
        CHECK_FALSE(order.waits(int(later), int(earlier)));
  }
  REQUIRE(temporaries.size() == size_t(2 * count));
  for (const auto &[start, range] : nonEmpty(temporaries))
    for (const auto &[otherStart, other] : nonEmpty(temporaries))
      if (start != otherStart) CHECK_FALSE(range.overlaps(other));
  CHECK(order.waits(int(plan.kernels.size()) - 1, 2));  // what reads `out` waits for every slice
  CHECK(planFromJson(toJson(plan), "plan.json") == plan);
}

TEST_CASE("a plan whose slices wait for each other or share memory is rejected") {
  const auto prices = analyticCostModel(findDevice("h200"));
  Attention slices(*prices);
  runInChunks(slices, {.count = 2, .prices = prices.get(), .isPipelined = true});
  slices.finish(true);
  Plan plan = slices.planned.plan;
  const auto problem = [&] { return rejectionOf([&] { verify(plan, "plan.json"); }); };
  REQUIRE(problem() == "no error");
  SECTION("a slice waits for another") {
    plan.kernels[3].after = {2};
    CHECK_THAT(problem(), Catch::Contains("kernels[3]") && Catch::Contains("slices run at once"));
  }
  SECTION("scores of both slices lie at one place") {
    const auto bufferOf = [&](size_t kernel) {
      return plan.tensors[size_t(plan.kernels[kernel].outputs.front())].buffer;
    };
    const auto placeOf = [&](int buffer) -> BufferAllocation & {
      return *std::ranges::find(plan.memoryPlan, buffer, &BufferAllocation::buffer);
    };
    placeOf(bufferOf(3)).in = placeOf(bufferOf(0)).in;
    placeOf(bufferOf(3)).offset = placeOf(bufferOf(0)).offset;
    CHECK_THAT(problem(), Catch::Contains("does not wait for it"));
  }
}

TEST_CASE("slices are of an outer axis alone") {
  const auto prices = analyticCostModel(findDevice("h200"));
  Attention attention(*prices);
  const std::string reason = rejectionOf([&] {  // 32 queries would do, 2 batches and 6 heads do not
    runInChunks(attention, {.count = 4, .prices = prices.get(), .isPipelined = true});
  });
  CHECK_THAT(reason, Catch::Contains("no plan in 4 slices") && Catch::Contains("along b: 2 ind") &&
                         Catch::Contains("along h: 6 ind") && !Catch::Contains("along j"));
}

TEST_CASE("a chunk draws the dropout masks of the whole") {
  samples::KernelBuilder builder("dropout", extents);
  const int x = builder.input("x", "hbjk");
  const int y = builder.op("dropout", OperatorClass::elementwise, {x}, "y", "hbjk");
  builder.last().attributes = {{"p", 0.5}, {"stream", int64_t(3)}};
  const Kernel whole = builder.build({y}), chunk = onChunk(whole, "h", 2, 3);
  const reference::DropoutSource source{.seed = 11, .step = 5};
  const reference::ElementReader one = [](std::span<const int64_t>) { return 1.0; };
  reference::PointEvaluator of(whole, {one}, source), ofPart(chunk, {one}, source);
  int dropped = 0, differentFromStart = 0;
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t j = 0; j < 32; ++j)
        for (int64_t k = 0; k < 32; ++k) {
          const std::vector<int64_t> at{h, b, j, k}, inWhole{h + 2, b, j, k};
          const double value = ofPart.output(0, at).value;
          CHECK(value == of.output(0, inWhole).value);
          dropped += value == 0;
          differentFromStart += value != of.output(0, at).value;
        }
  CHECK(dropped > 1000);
  CHECK(differentFromStart > 1000);
}

namespace {

/// Where an element of a chunk lies in the whole.
std::vector<int64_t> placed(const Kernel &kernel, ValueId value, std::span<const int64_t> at,
                            const std::string &axis, int64_t start) {
  std::vector<int64_t> place(at.begin(), at.end());
  const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
  for (size_t dimension = 0; dimension < axes.size(); ++dimension)
    if (kernel.axes[size_t(axes[dimension])].name == axis) place[dimension] += start;
  return place;
}

/// How many elements of a chunk are not those of the whole. `isCounted`: from where it starts.
int differences(const Kernel &whole, const std::string &axis, int64_t start, bool isCounted) {
  const Kernel cut = onChunk(whole, axis, start, extents.at(axis[0]) / 2);
  Kernel chunk = cut;
  if (!isCounted) chunk.body[0].attributes.erase("origins");
  const auto element = [](size_t input, std::span<const int64_t> at) {
    int64_t number = int64_t(input) + 1;
    for (const int64_t place : at) number = number * 37 + place;
    return input == 0 ? 1 + double(number % 101) / 8 : double(number % 5);
  };
  std::vector<reference::ElementReader> ofWhole, ofChunk;
  for (size_t input = 0; input < whole.inputs.size(); ++input) {
    ofWhole.push_back([=](std::span<const int64_t> at) { return element(input, at); });
    ofChunk.push_back([=, &whole](std::span<const int64_t> at) {
      return element(input, placed(whole, whole.inputs[input], at, axis, start));
    });
  }
  reference::PointEvaluator of(whole, ofWhole, {}), ofPart(chunk, ofChunk, {});
  int different = 0;
  const auto extent = [&](size_t dimension) { return chunk.axes[dimension].extent; };
  for (int64_t b = 0; b < extent(0); ++b)
    for (int64_t h = 0; h < extent(1); ++h)
      for (int64_t j = 0; j < extent(2); ++j)
        for (int64_t k = 0; k < extent(3); ++k) {
          const std::vector<int64_t> at{b, h, j, k};
          different += ofPart.output(0, at).value !=
                       of.output(0, placed(whole, whole.outputs[0], at, axis, start)).value;
        }
  return different;
}

}  // namespace

TEST_CASE("masks, slopes and rotations count from where their chunk starts") {
  for (const auto &[name, whole] : nonEmpty(samples::countingKernels(extents)))
    for (const char *axis : {"b", "h", "j"}) {
      INFO(name << " along " << axis);
      const bool isCounted = axis[0] == 'j' || (axis[0] == 'h' && name == "alibi");
      const AxisId index =
          int(std::ranges::find(whole.axes, axis, &Axis::name) - whole.axes.begin());
      CHECK(countsAlong(whole, whole.body[0], index) == isCounted);
      const int64_t half = extents.at(axis[0]) / 2;
      for (const int64_t start : {int64_t(0), half})
        CHECK(differences(whole, axis, start, true) == 0);
      CHECK((differences(whole, axis, half, false) > 0) == isCounted);
    }
}

TEST_CASE("the expression of a chunk says where it starts, and its key differs by that") {
  const Kernel whole = samples::countingKernels(extents).front().whole;  // causal
  const Kernel first = onChunk(whole, "j", 0, 8), last = onChunk(whole, "j", 24, 8);
  CHECK(first.body[0].expression.text() == whole.body[0].expression.text());
  CHECK_THAT(last.body[0].expression.text(), Catch::Contains("[2] + 24"));
  CHECK(canonicalText(first) != canonicalText(last));
  CHECK(onChunk(whole, "h", 1, 2).body[0].attributes == whole.body[0].attributes);
}

TEST_CASE("of a causal mask the last chunk of queries leaves most") {
  samples::KernelBuilder builder("scores", only("hjkp"));
  const int q = builder.input("q", "hjp"), keys = builder.input("keys", "hkp");
  const int gemm =
      builder.op("contract", OperatorClass::contraction, {q, keys}, "gemm", "hjk", "p");
  builder.last().attributes = {{"spec", std::string("hjp,hkp->hjk")}};
  builder.last().flop = 1e6;
  const int y = builder.op("mask", OperatorClass::elementwise, {gemm}, "y", "hjk");
  builder.last().attributes = {
      {"kind", std::string("causal")}, {"query", int64_t(1)}, {"key", int64_t(2)}};
  builder.compute(maskExpression({.key = 2, .query = 1}));
  const Kernel whole = builder.build({y});
  CHECK(visibleShare(whole) == Approx(33.0 / 64));
  CHECK(visibleShare(onChunk(whole, "j", 0, 8)) == Approx(4.5 / 32));
  CHECK(visibleShare(onChunk(whole, "j", 24, 8)) == Approx(28.5 / 32));
}

TEST_CASE("what reads an operand beyond its chunk runs on none") {
  for (const auto &[name, whole] : nonEmpty(samples::countingKernels(extents))) {
    if (name != "document" && name != "rotary") continue;
    INFO(name);
    CHECK_THAT(rejectionOf([&, &whole = whole] { onChunk(whole, "k", 0, 16); }),
               Catch::Contains("does not run on chunks of axis k"));
  }
}

namespace {

/// softmax(x) over k, dropped, times v.
Kernel droppedFold(const std::string &lettersOfX) {
  samples::KernelBuilder builder("fold", extents);
  const int x = builder.input("x", lettersOfX), v = builder.input("v", "hbkw");
  const int y = builder.op("online_softmax_contract", OperatorClass::contraction, {x, v}, "y",
                           "hbjw", "k", DType::f32);
  builder.last().attributes = {
      {"spec", lettersOfX + ",hbkw->hbjw"}, {"p", 0.5}, {"stream", int64_t(3)}};
  return builder.build({y});
}

}  // namespace

TEST_CASE("a chunk of a fold drops what the whole drops") {
  const Kernel whole = droppedFold("hbjk"), chunk = onChunk(whole, "h", 2, 3),
               columns = onChunk(whole, "w", 4, 4), first = onChunk(whole, "h", 0, 2);
  CHECK(std::get<int64_t>(chunk.body[0].attributes.at("outer")) == 4);
  CHECK(canonicalText(first) == canonicalText(onChunk(whole, "h", 4, 2)));
  CHECK(codegen::numberOf({.kind = codegen::Parameter::Kind::dropoutStream, .index = 0}, chunk) ==
        3);
  CHECK(codegen::numberOf({.kind = codegen::Parameter::Kind::dropoutOuter, .index = 0}, chunk) ==
        4);
  CHECK_FALSE(columns.body[0].attributes.contains("outer"));  // the scores lack w

  const reference::DropoutSource source{.seed = 11, .step = 5};
  const reference::ElementReader score = [](std::span<const int64_t>) { return 1.0; },
                                 value = [](std::span<const int64_t> at) {
                                   return std::ldexp(1.0, int(at[2]));
                                 };
  reference::PointEvaluator of(whole, {score, value}, source),
      ofPart(chunk, {score, value}, source), ofColumns(columns, {score, value}, source);
  int differentFromStart = 0;
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t j = 0; j < 32; ++j) {
        const std::vector<int64_t> at{h, b, j, 1}, inWhole{h + 2, b, j, 1};
        const double result = ofPart.output(0, at).value;
        CHECK(result == of.output(0, inWhole).value);
        CHECK(ofColumns.output(0, at).value == of.output(0, at).value);
        differentFromStart += result != of.output(0, at).value;
      }
  CHECK(differentFromStart > 100);
}

TEST_CASE("chunks of a dropout are one text, and their places arguments") {
  samples::KernelBuilder builder("dropout", extents);
  const int x = builder.input("x", "hbjk");
  const int y = builder.op("dropout", OperatorClass::elementwise, {x}, "y", "hbjk");
  builder.last().attributes = {{"p", 0.5}, {"stream", int64_t(3)}};
  const Kernel whole = builder.build({y}), first = onChunk(whole, "h", 0, 3),
               second = onChunk(whole, "h", 3, 3);
  CHECK(canonicalText(first) == canonicalText(second));
  CHECK(canonicalText(first) != canonicalText(whole));
  Configuration configuration;
  forEachConfiguration(first, findDevice("h200"), {}, [&](const Configuration &candidate) {
    configuration = candidate;
    return false;
  });
  const codegen::EmittedKernel one = codegen::emit(first, configuration, "sm_90a"),
                               other = codegen::emit(second, configuration, "sm_90a");
  CHECK(one.text == other.text);
  const auto place = std::ranges::find(one.parameters, codegen::Parameter::Kind::dropoutOuter,
                                       &codegen::Parameter::kind);
  REQUIRE(place != one.parameters.end());
  CHECK(codegen::numberOf(*place, first) == 0);
  CHECK(codegen::numberOf(*place, second) == 6);  // 3 heads of 2 batches come before
}

TEST_CASE("a chunk takes the fastest of its measurements, and without any the whole's knobs") {
  const auto analytic = analyticCostModel(findDevice("h200"));
  Attention whole(*analytic);
  runInChunks(whole, {.count = 2, .prices = analytic.get()});
  const ChosenKernel &softmax = whole.planned.kernels[1];
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  std::vector<Configuration> rows;
  LayoutConstraints layouts;
  layouts.inputs = {softmax.configuration.inputs[0]};
  layouts.outputs = {softmax.configuration.outputs[0]};
  forEachConfiguration(softmax.kernel, findDevice("h200"), layouts,
                       [&](const Configuration &candidate) {
                         if (candidate.knobs != softmax.configuration.knobs)
                           rows.push_back(candidate);
                         return rows.size() < 3;
                       });
  REQUIRE(rows.size() == 3);
  for (size_t n = 0; n < rows.size(); ++n)
    addMeasurement(profile, softmax.kernel, rows[n],
                   {.seconds = n == 1 ? 1e-6 : 2e-6,
                    .n = 9,
                    .spread = 0.01,
                    .familyVersion = loopFamily.version});
  const auto measured = measuredCostModel(findDevice("h200"), profile, "profile p", false);
  Attention chunks(*analytic);
  runInChunks(chunks, {.count = 2, .prices = measured.get()});
  CHECK(chunks.planned.kernels[1].configuration.knobs == rows[1].knobs);
  CHECK(chunks.planned.plan.kernels[1].knobs ==
        planKnobs(rows[1].knobs, chunks.planned.kernels[1].kernel));
  CHECK(chunks.planned.plan.kernels[1].measured);
  CHECK(chunks.planned.plan.kernels[1].seconds == 1e-6);
  CHECK_FALSE(chunks.planned.plan.kernels[0].measured);
  CHECK(chunks.planned.kernels[0].configuration.knobs ==
        whole.planned.kernels[0].configuration.knobs);
}

TEST_CASE("a profile for plans in chunks has every kernel of theirs once") {
  const auto model = analyticCostModel(findDevice("h200"));
  std::vector<PlannedKernels> plans;
  for (const int count : {2, 6, 2}) {
    Attention chunks(*model);
    runInChunks(chunks, {.count = count, .prices = model.get()});
    plans.push_back(chunks.planned);
  }
  const decision::ProfileSpace space = decision::chunkSpace(plans, *model, {}, ofOlderText);
  std::vector<Kernel> softmaxes, contractions;
  for (const decision::ProfileKernelSpace &one : space.kernels)
    (contractionValues(one.kernel) ? contractions : softmaxes).push_back(one.kernel);
  REQUIRE(softmaxes.size() == 2);  // on a batch, and on a head of all batches
  CHECK(softmaxes[0].axes != softmaxes[1].axes);
  CHECK(contractions.size() == 4);  // of the two before and behind it
  CHECK(space.items.size() >= 8);
  std::set<std::string> lines;
  for (const decision::ProfileItem &item : nonEmpty(space.items))
    CHECK(lines.insert(item.subject + item.line).second);
}

TEST_CASE("kernels of a profile go by their candidate's name, whatever characters it has") {
  const auto model = analyticCostModel(findDevice("h200"));
  Attention chunks(*model);
  std::set<std::string> candidates;
  for (size_t index = 0; index < chunks.planned.kernels.size(); ++index) {
    ChosenKernel &chosen = chunks.planned.kernels[index];
    chosen.candidateName = fmt::format("layer__{}", index);
    candidates.insert(chosen.candidateName);
    chunks.planned.plan.kernels[index].name = chosen.kernel.name =
        chosen.candidateName + "__b_h_j_k";
  }
  runInChunks(chunks, {.count = 2, .prices = model.get()});
  for (const decision::ProfileKernelSpace &one :
       nonEmpty(decision::chunkSpace({chunks.planned}, *model, {}, ofOlderText).kernels))
    CHECK(candidates.contains(one.name));
}

TEST_CASE("what was measured of an older text is measured again, as it was chosen") {
  const auto analytic = analyticCostModel(findDevice("h200"));
  Attention whole(*analytic);
  ChosenKernel &softmax = whole.planned.kernels[1];
  softmax.cost.measured = true;
  softmax.cost.source =
      codegen::sourceHash(codegen::emit(softmax.kernel, softmax.configuration, "sm_90a").timedText);
  CHECK(decision::chunkSpace({whole.planned}, *analytic, {}, ofOlderText).items.empty());
  softmax.cost.source = "0123456789abcdef";
  const decision::ProfileSpace space =
      decision::chunkSpace({whole.planned, whole.planned}, *analytic, {}, ofOlderText);
  REQUIRE(space.items.size() == 1);
  CHECK(space.items.front().again);
  CHECK(space.items.front().configuration == softmax.configuration);
  CHECK(space.kernels[space.items.front().kernel].kernel.name == softmax.kernel.name);
}

TEST_CASE("no chunks along what is reduced, compared or drawn from another origin") {
  const Kernel softmax = samples::softmaxKernel(extents, "bhjk");
  CHECK_THAT(rejectionOf([&] { onChunk(softmax, "k", 0, 16); }),
             Catch::Contains("softmax does not run on chunks of axis k"));
  CHECK_THAT(rejectionOf([&] { onChunk(softmax, "u", 0, 16); }), Catch::Contains("no axis u"));
  CHECK_THAT(rejectionOf([&] { onChunk(softmax, "h", 4, 3); }),
             Catch::Contains("3 indices of axis h from 4 on, of 6"));
  CHECK(onChunk(samples::identityKernel(extents, "hj"), "h", 0, 1).axes[1].extent ==
        1);  // between two layouts
  samples::KernelBuilder moves("slice", extents);
  const int from = moves.input("x", "hj");
  CHECK_THAT(rejectionOf([&] {
               onChunk(moves.build({moves.op("slice", OperatorClass::movement, {from}, "y", "hj")}),
                       "h", 0, 1);
             }),
             Catch::Contains("slice does not run"));
  samples::KernelBuilder builder("mask", extents);
  const int x = builder.input("x", "bhjk");
  const int y = builder.op("mask", OperatorClass::elementwise, {x}, "y", "bhjk");
  builder.last().attributes = {
      {"kind", std::string("causal")}, {"query", int64_t(2)}, {"key", int64_t(3)}};
  const Kernel mask = builder.build({y});
  CHECK_THAT(rejectionOf([&] { onChunk(mask, "j", 0, 8); }),
             Catch::Contains("mask does not run on chunks of axis j"));
  CHECK(onChunk(mask, "h", 0, 2).axes[1].extent == 2);
  samples::KernelBuilder drops("dropout", extents);
  const int in = drops.input("x", "bhjk"),
            out = drops.op("dropout", OperatorClass::elementwise, {in}, "y", "bhjk");
  drops.last().attributes = {{"p", 0.5}, {"stream", int64_t(3)}};
  const Kernel dropout = drops.build({out});
  CHECK_THAT(rejectionOf([&] { onChunk(dropout, "h", 3, 3); }),
             Catch::Contains("axis h, which is not the outermost"));
  CHECK(std::get<int64_t>(onChunk(dropout, "b", 1, 1).body[0].attributes.at("outer")) == 6);
  CHECK_THAT(rejectionOf([&] { onChunk(droppedFold("bhjk"), "h", 3, 3); }),
             Catch::Contains("axis h, which is not the outermost"));
}
