// The backward pass of fused attention by mma.sync: which kernels and layouts it takes, in which
// tiles, what is emitted, and how its price grows.
#include "codegen/Emit.h"
#include "codegen/families/attention/AttentionLayouts.h"
#include "codegen/families/attention_backward/AttentionBackwardLayouts.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardCost.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardTile.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"
#include "tests/unit/samples/SampleTf32.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

std::vector<Configuration> own(const Kernel &kernel, const char *device = "a100") {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, findDevice(device)).legal)
    if (configuration.knobs.is<Sm80AttentionBackwardKnobs>()) result.push_back(configuration);
  return result;
}

std::string exclusion(const Kernel &kernel, const char *device = "a100") {
  for (const Exclusion &excluded : enumerate(kernel, findDevice(device)).excluded)
    if (excluded.family == "attention-backward-sm80") return excluded.reason;
  return "";
}

AttentionBackwardProblem problemOf(const Kernel &kernel, const Configuration &configuration) {
  return valueOrThrow(
      attentionBackwardProblem(kernel, attentionBackwardRegion(kernel).value(), configuration));
}

Configuration logicalOrder(const Kernel &kernel, const Sm80AttentionBackwardKnobs &knobs) {
  LayoutTuple tuple;
  for (const ValueId value : operandValues(kernel))
    tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return toConfiguration(kernel, tuple, knobs);
}

double best(const Kernel &kernel, const char *device = "a100") {
  const std::unique_ptr<CostModel> model = analyticCostModel(findDevice(device));
  double least = 1;
  for (const Configuration &one : nonEmpty(own(kernel, device)))
    least = std::min(least, model->cost(kernel, one).seconds);
  return least;
}

bool has(const std::string &text, const char *piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("backward attention by mma.sync takes heads of every width up to 256, on every target") {
  for (const int64_t width : {8, 16, 40, 64, 80, 96, 128, 160, 192, 240, 256})
    for (const char *device : {"a100", "rtx3090", "h200"}) {
      const Kernel kernel = plainBackward({.j = 333, .k = 333, .p = width, .w = width}, DType::f16);
      INFO(width << " on " << device << ": " << exclusion(kernel, device));
      std::set<Knobs> tiles;
      for (const Configuration &configuration : nonEmpty(own(kernel, device))) {
        tiles.insert(configuration.knobs);
        const AttentionBackwardProblem problem = problemOf(kernel, configuration);
        CHECK(sm80AttentionBackwardLayoutRejection(problem).empty());
        CHECK(sm80AttentionBackwardSharedBytes(
                  problem, configuration.knobs.get<Sm80AttentionBackwardKnobs>(), 2) <= 99 * 1024);
      }
      CHECK((width > 128 || tiles.size() >= 3));
    }
}

TEST_CASE("what backward attention by mma.sync does not take is said") {
  const AttentionExtents e{.j = 64, .k = 64};
  CHECK(has(exclusion(plainBackward(e, DType::f32)), "f16 and bf16 are taken"));
  CHECK(exclusion(plainBackward({.p = 400, .w = 64}, DType::f16)) ==
        "280 registers a thread for heads of 400 and 64 elements and 16 columns a step; 255 are "
        "free: take fewer columns, or shorter heads");
  // Gradients of f32 and of packed tokens are summed together, however wide heads are.
  CHECK(has(exclusion(inTf32(plainBackward({.p = 256, .w = 256}, DType::f32))),
            "336 registers a thread"));
  CHECK(has(exclusion(packedBackward({.b = 2, .j = 64, .k = 64, .p = 256, .w = 256, .tokens = 128},
                                     DType::f16, true)),
            "336 registers a thread"));
  CHECK(has(exclusion(plainBackward({.p = 36, .w = 64}, DType::f16)), "multiples of 8"));
  CHECK(has(exclusion(plainBackward(e, DType::f16), "v100"), "sm_80 and later"));
  CHECK(
      exclusion(plainAttention(e, DType::f16)) ==
      "no 'softmax_from_log_sums' in the body; one computes the probabilities of a backward pass");
  Device without = findDevice("a100");
  without.familiesTakenAway.insert(familyNamed("attention-backward-sm80"));
  CHECK(attentionBackwardRejections(without)(plainBackward(e, DType::f16)) ==
        "attention-backward-sm90: sm_80 has no WGMMA; attention-backward-sm80: it is switched off");
  CHECK(attentionBackwardRejections(findDevice("a100"))(plainBackward(e, DType::f16)) == "");
  // Views whose rows start anywhere: gradients may lie so, operands not.
  const Kernel kernel = plainBackward(e, DType::f16);
  const auto withPitch = [&](bool isOutput) {
    Configuration configuration = logicalOrder(kernel, {});
    Layout &layout = isOutput ? configuration.outputs[0] : configuration.inputs[3];
    layout.strides = {10000, 4900, 4900, 70, 1};
    return sm80AttentionBackwardLayoutRejection(problemOf(kernel, configuration));
  };
  CHECK(withPitch(true) == "");
  CHECK(
      withPitch(false) ==
      "rows of d_output are no neighbours that start at multiples of 16 bytes, which asynchronous "
      "copies ask for");
}

TEST_CASE("blocks with keys of wide heads sum one gradient each") {
  const auto emitted = [](int64_t p, int64_t w) {
    const Kernel kernel =
        causalBackward({.h = 3, .g = 2, .j = 200, .k = 130, .p = p, .w = w}, DType::f16);
    return codegen::emit(kernel, logicalOrder(kernel, {.tileColumns = 16}), "sm_80");
  };
  // Three tiles of keys of three heads, four of queries of six.
  const codegen::EmittedKernel both = emitted(192, 128), one = emitted(192, 192);
  CHECK(both.launch.grid[0] == 3 * 3 + 4 * 6);
  CHECK(has(both.readable, "weft::sm80::attentionBackward<"));
  CHECK(one.launch.grid[0] == 2 * 3 * 3 + 4 * 6);
  CHECK(has(one.readable, "weft::sm80::wideAttentionBackward<"));
  CHECK(has(one.readable, "weft/sm80_wide_attention_backward.cuh"));
  // Eight products of 256 columns in the place of seven, by twice as many blocks with keys.
  const auto seconds = [](int64_t width) {
    const Kernel kernel =
        plainBackward({.b = 8, .h = 16, .j = 1024, .k = 1024, .p = width, .w = width}, DType::f16);
    const Configuration configuration = logicalOrder(kernel, {.tileColumns = 16});
    return sm80AttentionBackwardCost(kernel, configuration,
                                     configuration.knobs.get<Sm80AttentionBackwardKnobs>(),
                                     findDevice("a100"))
        .seconds;
  };
  CHECK(seconds(256) > 1.5 * seconds(160));
  CHECK(seconds(256) < 3 * seconds(160));
}

TEST_CASE("dropouts of a backward pass draw alike, along queries and keys") {
  const auto rejection = [](const Dropout &first, const Dropout &second) {
    FusedAttentionBackward backward("backward", {.j = 64, .k = 64}, DType::f16);
    const int y = backward.probability(backward.scores());
    const int kept = backward.dropped(y, first, "kept");
    const int dY = backward.dropped(backward.dKept(), second, "d_y");
    const int dScores = backward.dSoftmax(dY, y);
    const int ofV = backward.dV(kept), ofQ = backward.dQ(dScores);
    return exclusion(backward.build({ofQ, backward.dK(dScores), ofV}));
  };
  CHECK(rejection({.p = 0.1, .stream = 3}, {.p = 0.1, .stream = 3}) == "");
  CHECK(rejection({.p = 0.1, .stream = 3}, {.p = 0.1, .stream = 4}) ==
        "two dropouts draw differently; a backward pass draws what its forward pass drew");
  // One query: the last axes but one are the heads of a group, which are the queries then.
  CHECK(exclusion(
            plainBackward({.g = 4, .j = 1, .k = 64}, DType::f16, Dropout{.p = 0.1, .stream = 3})) ==
        "'y' is dropped by other last axes than queries and keys");
}

TEST_CASE("tiles of backward attention by mma.sync fit registers and shared memory") {
  const auto rejection = [](int64_t width, const Sm80AttentionBackwardKnobs &knobs) {
    const Kernel kernel = plainBackward({.p = width, .w = width}, DType::f16);
    return sm80AttentionBackwardTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs,
                                              2);
  };
  CHECK(rejection(128, {.tileRows = 128, .tileColumns = 32, .stages = 2}) == "");
  CHECK(rejection(128, {.tileRows = 128, .tileColumns = 32, .stages = 3}) ==
        "115456 bytes of shared memory; the limit is 101376: take fewer rows, columns or stages");
  CHECK(has(rejection(128, {.tileColumns = 64}), "256 registers a thread"));
  CHECK(has(rejection(64, {.tileRows = 96}), "32, 64 and 128 are taken"));
  CHECK(has(rejection(64, {.tileColumns = 48}), "16, 32 and 64 are taken"));
  CHECK(has(rejection(64, {.stages = 1}), "2 to 4 are taken"));
  const Kernel kernel = plainBackward({.p = 128, .w = 128}, DType::f16);
  CHECK_THROWS_AS(
      codegen::emit(kernel, logicalOrder(kernel, {.tileRows = 128, .tileColumns = 32, .stages = 3}),
                    "sm_80"),
      Error);
}

TEST_CASE("the gradient of queries lies in step with that of keys, whatever the output's does") {
  const Kernel kernel = plainBackward({.b = 2, .h = 3}, DType::f16);
  const AttentionBackwardRegion region = attentionBackwardRegion(kernel).value();
  const std::vector<ValueId> operands = operandValues(kernel);
  const auto placeOf = [&](ValueId value) {
    return size_t(std::ranges::find(operands, value) - operands.begin());
  };
  const size_t dQ = placeOf(region.dQ), dK = placeOf(region.dK), dOutput = placeOf(region.dOutput);
  std::set<Layout> besideOne;  // of dQ, beside one of the output's gradient
  const std::vector<LayoutTuple> tuples = attentionBackwardTuples(kernel, region);
  CHECK(tuples.size() <= mostAttentionTuples);
  for (const LayoutTuple &tuple : nonEmpty(tuples)) {
    std::vector<AxisId> ofQueries = longAxes(kernel, region.dQ, tuple[dQ]);
    const std::vector<AxisId> ofKeys = longAxes(kernel, region.dK, tuple[dK]);
    for (AxisId &axis : ofQueries)  // the queries' own
      if (std::ranges::find(ofKeys, axis) == ofKeys.end()) axis = region.keyAxis;
    CHECK(ofQueries == ofKeys);
    if (tuple[dOutput] == tuples.front()[dOutput]) besideOne.insert(tuple[dQ]);
  }
  CHECK(besideOne.size() == 6);
}

TEST_CASE("layouts of backward attention: heads in any order, few enough of them") {
  const Kernel grouped = plainBackward({.b = 2, .h = 3, .g = 4}, DType::f16);
  const AttentionBackwardRegion region = attentionBackwardRegion(grouped).value();
  const std::vector<LayoutTuple> tuples = attentionBackwardTuples(grouped, region);
  CHECK(tuples.size() <= mostAttentionTuples);
  CHECK(tuples.size() > 20);
  CHECK(std::ranges::is_sorted(tuples));
  std::set<Layout> ofQ, ofK;
  for (const LayoutTuple &tuple : nonEmpty(tuples)) {
    ofQ.insert(tuple[0]), ofK.insert(tuple[1]);
    CHECK(tuple[0].order.back() == 4);  // elements of a head
  }
  CHECK(ofQ.size() == 24);
  CHECK(ofK.size() == 6);
  // Of few axes everything is free.
  const Kernel single = plainBackward({.b = 1, .h = 2}, DType::f16);
  const auto all = attentionBackwardTuples(single, attentionBackwardRegion(single).value());
  CHECK(all.size() >= 128);
}

TEST_CASE("the problem of a backward pass has groups of heads and strides of gradients") {
  const Kernel kernel = plainBackward({.b = 2, .h = 3, .g = 4, .j = 50, .k = 60}, DType::f16);
  const AttentionBackwardProblem problem = problemOf(kernel, logicalOrder(kernel, {}));
  CHECK(problem.attention.heads == 24);
  CHECK(problem.attention.headsOfGroup == 4);
  CHECK(problem.groups() == 6);
  CHECK(problem.attention.queries == 50);
  CHECK(problem.attention.keys == 60);
  CHECK(problem.dOutput().rowStride == 64);
  CHECK(problem.dQ.headStrides == std::vector<int64_t>{3 * 4 * 50 * 64, 4 * 50 * 64, 50 * 64});
  CHECK(problem.dK.headStrides == std::vector<int64_t>{3 * 60 * 64, 60 * 64, 0});
  CHECK(sm80AttentionBackwardKeyBlocks(problem, {.tileRows = 32}) == 6 * 2);
  CHECK(sm80AttentionBackwardBlocks(problem, {.tileRows = 32}) == 6 * 2 + 24 * 2);
}

TEST_CASE("emitted backward attention folds scales and leaves masks out where they keep all") {
  const auto text = [&](const Kernel &kernel) {
    return codegen::emit(kernel, logicalOrder(kernel, {}), "sm_80").readable;
  };
  const AttentionExtents e{.b = 2, .h = 4, .g = 3, .j = 300, .k = 301};
  const std::string plain = text(plainBackward(e, DType::f16)),
                    causal = text(causalBackward(e, DType::f16)),
                    capped = text(cappedBackward(e, DType::f16)),
                    dropped = text(plainBackward(e, DType::f16, Dropout{.p = 0.5, .stream = 1}));
  CHECK(has(plain, "exponentFactor = 0.18033688f"));  // log2(e) / 8
  CHECK(has(plain, ".headsOfGroup = g"));
  CHECK(has(plain, "coverage = weft::FullCoverage{}"));
  CHECK(has(plain, "dropout = weft::NoDropout{}"));
  CHECK(has(plain, "gradientsWithoutMasks = gradients"));
  CHECK(has(causal, "gradientsWithoutMasks = unmaskedGradients"));
  CHECK(has(causal, "coverage = coverage"));
  const size_t unmasked = causal.find("unmaskedGradients = [");
  REQUIRE(unmasked != std::string::npos);
  const std::string body = causal.substr(unmasked, causal.find("};", unmasked) - unmasked);
  CHECK_FALSE(has(body, "key <="));  // neither the mask nor its derivative
  CHECK(has(capped, "exponentFactor = 1.442695f"));
  CHECK(has(capped, "weft::tanh"));
  CHECK(has(dropped, "isKept ?"));
  CHECK(has(dropped, "weft::keptTransposedFragment"));
  CHECK(codegen::emit(causalBackward(e, DType::f16),
                      logicalOrder(causalBackward(e, DType::f16), {}), "sm_80")
            .entry == "attention_backward_causal_f16_8x900x301x64");
}

TEST_CASE("backward attention stores the gradient of scores where the kernel asks for it") {
  const AttentionExtents extents{.b = 4, .h = 8, .j = 512, .k = 512};
  const Kernel stored = biasedBackward(extents, DType::f16, true),
               kept = biasedBackward(extents, DType::f16);
  const auto textOf = [](const Kernel &kernel) {
    LayoutTuple tuple;
    for (const ValueId value : operandValues(kernel))
      tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
    return codegen::emit(kernel, toConfiguration(kernel, tuple, Sm80AttentionBackwardKnobs{}),
                         "sm_80")
        .readable;
  };
  CHECK(textOf(stored).find("weft::storeScorePair(d_scores + place, pair)") != std::string::npos);
  CHECK(textOf(stored).find(".storeScores = storeScores") != std::string::npos);
  CHECK(textOf(kept).find("storeScores") == std::string::npos);
  const auto best = [](const Kernel &kernel) {
    double least = 1;
    for (const Configuration &one : nonEmpty(enumerate(kernel, findDevice("a100")).legal))
      if (one.knobs.is<Sm80AttentionBackwardKnobs>())
        least = std::min(least, analyticCostModel(findDevice("a100"))->cost(kernel, one).seconds);
    return least;
  };
  CHECK(best(stored) > 1.05 * best(kept));
}

TEST_CASE("the price of backward attention grows with work, and masks cut it") {
  const auto square = [](int64_t length, int64_t width = 64) {
    return AttentionExtents{.b = 4, .h = 8, .j = length, .k = length, .p = width, .w = width};
  };
  for (const char *device : {"a100", "h200"}) {
    const double small = best(plainBackward(square(1024), DType::f16), device),
                 large = best(plainBackward(square(4096), DType::f16), device);
    CHECK(large > 10 * small);
    CHECK(large < 20 * small);
    const double causal = best(causalBackward(square(4096), DType::f16), device);
    CHECK(causal < 0.65 * large);
    CHECK(causal > 0.45 * large);
    CHECK(best(plainBackward(square(4096, 128), DType::f16), device) > 1.4 * large);
    CHECK(best(cappedBackward(square(1024), DType::f16), device) <
          best(plainBackward(square(1024), DType::f16), device));
    CHECK(best(biasedBackward(square(1024), DType::f16), device) >
          1.1 * best(causalBackward(square(1024), DType::f16), device));
  }
}

TEST_CASE("a backward pass of f32 is taken where all five contractions may read it as tf32") {
  const Kernel kernel = inTf32(plainBackward({.h = 2, .j = 333, .k = 333}, DType::f32));
  for (const char *device : {"a100", "h200"})
    for (const Configuration &configuration : nonEmpty(own(kernel, device)))
      CHECK(problemOf(kernel, configuration).attention.operandType == DType::tf32);
  size_t contractions = 0;
  for (size_t op = 0; op < kernel.body.size(); ++op) {
    if (kernel.body[op].kind != OpKind::contract) continue;
    ++contractions;
    Kernel partly = kernel;
    partly.body[op].attributes.erase("precision");
    CHECK(has(exclusion(partly), "f32 that may be read as tf32 (--tf32)"));
  }
  CHECK(contractions == 5);
  const codegen::EmittedKernel emitted = codegen::emit(kernel, own(kernel)[0], "sm_80");
  CHECK(emitted.entry == "attention_backward_tf32_2x333x333x64");
  CHECK(has(emitted.text, "weft/sm80_tf32_attention_backward.cuh"));
  // Elements of four bytes: fewer rows or columns fit shared memory.
  const auto tiles = [&](int64_t width) {
    const Kernel wide = inTf32(plainBackward({.p = width, .w = width}, DType::f32));
    return sm80AttentionBackwardTileChoices(problemOf(wide, logicalOrder(wide, {})), 2);
  };
  CHECK(tiles(64).size() >= 4);
  CHECK(tiles(128) == std::vector{Sm80AttentionBackwardKnobs{64, 16, 2}});
  CHECK(tiles(160) == std::vector{Sm80AttentionBackwardKnobs{32, 16, 2}});
  CHECK(has(exclusion(inTf32(plainBackward({.p = 256, .w = 256}, DType::f32))),
            "336 registers a thread"));
  const AttentionExtents e{.b = 4, .h = 16, .j = 2048, .k = 2048};
  const double tf32 = best(inTf32(plainBackward(e, DType::f32))),
               halves = best(plainBackward(e, DType::f16));
  CHECK(tf32 > 1.3 * halves);
  CHECK(tf32 < 3 * halves);
}
