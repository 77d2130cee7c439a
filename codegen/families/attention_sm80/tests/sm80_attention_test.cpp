// Fused attention by mma.sync: which kernels and layouts it takes, in which tiles, what is emitted,
// and how its price grows.
#include "codegen/Emit.h"
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentions.h"
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
    if (configuration.knobs.is<Sm80AttentionKnobs>()) result.push_back(configuration);
  return result;
}

std::string exclusion(const Kernel &kernel, const char *device = "a100") {
  for (const Exclusion &excluded : enumerate(kernel, findDevice(device)).excluded)
    if (excluded.family == "attention-sm80") return excluded.reason;
  return "";
}

AttentionProblem problemOf(const Kernel &kernel, const Configuration &configuration) {
  return valueOrThrow(attentionProblem(kernel, attentionRegion(kernel).value(), configuration));
}

Configuration logicalOrder(const Kernel &kernel, const Sm80AttentionKnobs &knobs) {
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

TEST_CASE("attention by mma.sync takes heads of every width up to 256, on every target") {
  for (const int64_t width : {8, 16, 40, 64, 80, 128, 192, 256})
    for (const char *device : {"a100", "rtx3090"}) {
      const Kernel kernel =
          plainAttention({.j = 333, .k = 333, .p = width, .w = width}, DType::f16);
      INFO(width << " on " << device << ": " << exclusion(kernel, device));
      std::set<Knobs> tiles;
      for (const Configuration &configuration : nonEmpty(own(kernel, device))) {
        tiles.insert(configuration.knobs);
        const AttentionProblem problem = problemOf(kernel, configuration);
        CHECK(sm80AttentionLayoutRejection(problem).empty());
        CHECK(sm80AttentionSharedBytes(problem, configuration.knobs.get<Sm80AttentionKnobs>()) <=
              99 * 1024);
      }
      CHECK(tiles.size() >= 1);
      CHECK((width > 128 || tiles.size() >= 4));
    }
}

TEST_CASE("what attention by mma.sync does not take is said") {
  const AttentionExtents e{.j = 64, .k = 64};
  CHECK(has(exclusion(plainAttention(e, DType::f32)), "f16 and bf16 are taken"));
  CHECK(has(exclusion(plainAttention({.p = 264, .w = 264}, DType::f16)), "at most 256"));
  CHECK(has(exclusion(plainAttention({.p = 36, .w = 64}, DType::f16)), "multiples of 8"));
  CHECK(has(exclusion(plainAttention(e, DType::f16), "v100"), "sm_80 and later"));
  // On sm_90a it has what TMA does not load or store: sums in another order.
  CHECK(has(exclusion(plainAttention(e, DType::f16), "h200"), "attention-sm90 takes"));
  CHECK(!own(plainAttention(e, DType::f16, true), "h200").empty());
  // Where that family is switched off, this one takes its place.
  Device alone = findDevice("h200");
  alone.familiesTakenAway.insert(familyNamed("attention-sm90"));
  CHECK(std::ranges::any_of(enumerate(plainAttention(e, DType::f16), alone).legal,
                            [](const Configuration &configuration) {
                              return configuration.knobs.is<Sm80AttentionKnobs>();
                            }));
  // A view whose rows start anywhere: the output may lie so, an operand not.
  const Kernel kernel = plainAttention(e, DType::f16);
  const auto withPitch = [&](bool isOutput) {
    Configuration configuration = logicalOrder(kernel, {});
    Layout &layout = isOutput ? configuration.outputs[0] : configuration.inputs[1];
    layout.strides = isOutput ? std::vector<int64_t>{10000, 4900, 4900, 70, 1}
                              : std::vector<int64_t>{10000, 4900, 70, 1};
    return sm80AttentionLayoutRejection(problemOf(kernel, configuration));
  };
  CHECK(withPitch(true) == "");
  CHECK(withPitch(false) ==
        "rows of keys are no neighbours that start at multiples of 16 bytes, which asynchronous "
        "copies ask for");
}

TEST_CASE("tiles of attention by mma.sync fit registers and shared memory") {
  const auto rejection = [](int64_t width, const Sm80AttentionKnobs &knobs) {
    const Kernel kernel = plainAttention({.p = width, .w = width}, DType::f16);
    return sm80AttentionTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs, {});
  };
  CHECK(rejection(128, {.tileQueries = 128, .tileKeys = 64, .stages = 2}) == "");
  CHECK(has(rejection(128, {.tileQueries = 128, .tileKeys = 64, .stages = 3}),
            "131072 bytes of shared memory; the limit is 101376"));
  CHECK(rejection(256, {.tileQueries = 64, .tileKeys = 32, .stages = 2}) == "");
  CHECK(has(rejection(64, {.tileQueries = 96}), "16, 32, 64 and 128 are taken"));
  CHECK(has(rejection(64, {.tileKeys = 48}), "32, 64 and 128 are taken"));
  CHECK(has(rejection(64, {.stages = 1}), "2 to 4 are taken"));
  const Kernel kernel = plainAttention({.p = 128, .w = 128}, DType::f16);
  CHECK_THROWS_AS(
      codegen::emit(kernel, logicalOrder(kernel, {.tileQueries = 128, .tileKeys = 64, .stages = 3}),
                    "sm_80"),
      Error);
}

TEST_CASE("emitted attention by mma.sync says where heads lie, and what masks leave") {
  const auto text = [&](const Kernel &kernel) {
    return codegen::emit(kernel, logicalOrder(kernel, {}), "sm_80").readable;
  };
  const AttentionExtents e{.b = 2, .h = 4, .g = 3, .j = 300, .k = 301};
  const std::string plain = text(plainAttention(e, DType::f16)),
                    causal = text(causalAttention(e, DType::f16, true)),
                    biased = text(biasedAttention(e, DType::f16));
  // Queries are one run of heads, three of which share keys.
  CHECK(has(plain, ".q = weft::Offset(number) * 19200, .k = weft::Offset(number / 3) * 19264"));
  CHECK(!has(plain, ".coverage"));
  CHECK(!has(plain, ".score"));
  CHECK(has(causal, ".coverage = coverage"));
  CHECK(has(causal, ".logSums = log_sums"));
  CHECK(has(causal, ".scalesLast = true"));
  CHECK(has(biased, ".scoreWithoutMasks = "));
  CHECK(has(biased, ".scalesLast = false"));
}

TEST_CASE("queries are turned by the functions of the rotary op, behind what a head's start is") {
  const AttentionExtents e{.b = 2, .h = 4, .g = 3, .j = 300, .k = 400, .p = 64, .w = 64};
  const auto emitted = [&](const Kernel &kernel) {
    return codegen::emit(kernel, logicalOrder(kernel, {}), "sm_80").readable;
  };
  const std::string cached = emitted(rotatedCachedAttention(e, DType::f16, {.turned = 32})),
                    plain = emitted(cachedAttention(e, DType::f16));
  CHECK(has(cached,
            "rotatedColumns = {.rotated = 32, .isHalved = true, .isReverse = false, "
            ".isShort = true};"));
  CHECK(has(cached, "weft::loadOne(lengths + weft::Offset(head_2 / 12))"));
  CHECK(has(cached,
            "weft::sm80::rotatedPlaces<rotatedColumns>(placesOfHead, positionOf, "
            "frequencyOf)"));
  CHECK(has(cached, "#include \"weft/sm80_rotated_queries.cuh\""));
  CHECK(has(plain, ".placesOfHead = placesOfHead,"));
  CHECK(!has(plain, "rotated"));
  // A token's position is its distance from the start of its sequence.
  AttentionExtents tokens = e;
  tokens.k = tokens.j, tokens.tokens = 500;
  const std::string packed = emitted(rotatedPackedAttention(tokens, DType::f16, {}, true));
  CHECK(has(packed, "const int token = sequences.of(head_2).first + query_2;"));
  CHECK(has(packed, "return token - token_starts_v;"));
}

TEST_CASE("pairs that are no whole chunks and queries of f32 are not turned on load, and say so") {
  const AttentionExtents e{.j = 64, .k = 64, .p = 40, .w = 40};
  CHECK(exclusion(rotatedAttention(e, DType::f16, {})) ==
        "40 elements of a query are turned as halved pairs; a thread turns multiples of 16");
  CHECK(exclusion(rotatedAttention(e, DType::f16, {.isHalved = false})).empty());
  CHECK(exclusion(rotatedAttention(e, DType::f16, {.turned = 16})).empty());
  CHECK(exclusion(rotatedAttention(e, DType::f16, {.isHalved = false, .turned = 12})) ==
        "12 elements of a query are turned as interleaved pairs; a thread turns multiples of 8");
  const AttentionExtents wide{.j = 64, .k = 64};
  CHECK(exclusion(inTf32(rotatedAttention(wide, DType::f32, {}))) ==
        "queries of f32 that a rotary op rotates; f16 and bf16 are rotated when they are loaded");
}

TEST_CASE("turning queries costs by what is turned, once a tile, and not by the keys") {
  const AttentionExtents few{.h = 8, .g = 4, .j = 256, .k = 256, .p = 128, .w = 128};
  AttentionExtents many = few;
  many.k = 4096;
  for (const char *device : {"a100", "h200"}) {
    const auto added = [&](const AttentionExtents &e, const RotaryForm &form) {
      Device alone = findDevice(device);
      alone.familiesTakenAway.insert(familyNamed("attention-sm90"));
      const std::unique_ptr<CostModel> model = analyticCostModel(alone);
      const Sm80AttentionKnobs knobs{.tileQueries = 64, .tileKeys = 64, .stages = 2};
      const auto seconds = [&](const Kernel &kernel) {
        return model->cost(kernel, logicalOrder(kernel, knobs)).seconds;
      };
      return seconds(rotatedAttention(e, DType::f16, form)) -
             seconds(plainAttention(e, DType::f16));
    };
    INFO(device);
    CHECK(added(few, {}) > 0.5e-6);
    CHECK(added(few, {}) < 5e-6);
    CHECK(added(few, {.turned = 32}) < added(few, {}));
    // The margin of what was not measured aside.
    CHECK(added(many, {}) < 2.6 * added(few, {}));
  }
}

TEST_CASE("attention by mma.sync draws dropped probabilities a fragment at a time") {
  const AttentionExtents e{.b = 2, .h = 3, .j = 100, .k = 90},
      grouped{.h = 4, .g = 4, .j = 5, .k = 3000};
  const Dropout dropout{.p = 0.25, .stream = 3};
  const auto isTaken = [&](const Kernel &kernel, const char *device) {
    INFO(device << ": " << exclusion(kernel, device));
    CHECK_FALSE(own(kernel, device).empty());
  };
  for (const char *device : {"a100", "rtx3090"}) {
    isTaken(droppedAttention(e, DType::f16, dropout), device);
    isTaken(droppedAttention(e, DType::bf16, dropout, true), device);
  }
  isTaken(inTf32(droppedAttention(e, DType::f32, dropout)), "a100");
  const Kernel kernel = droppedAttention(e, DType::f16, dropout);
  const codegen::EmittedKernel emitted = codegen::emit(kernel, own(kernel)[0], "sm_80");
  CHECK(has(emitted.readable, ".dropout = kept"));
  CHECK(has(emitted.readable, ".keepScale = 1.3333334f"));
  CHECK(has(emitted.readable, "dropThreshold = 16384u"));
  // A share of zero is none.
  const Kernel none = droppedAttention(e, DType::f16, {.p = 0, .stream = 3});
  CHECK(!has(codegen::emit(none, logicalOrder(none, {}), "sm_80").readable, "dropout"));
  // Rows of several heads are fragments of none.
  const Kernel few = droppedAttention(grouped, DType::f16, dropout);
  INFO(exclusion(few));
  for (const Configuration &configuration : nonEmpty(own(few)))
    CHECK(configuration.knobs.get<Sm80AttentionKnobs>().packed == 0);
  const Sm80AttentionKnobs packed{.tileQueries = 16, .packed = 1};
  CHECK(sm80AttentionTileRejection(problemOf(few, logicalOrder(few, packed)), packed,
                                   {.hasDropout = true}) ==
        "rows of packed heads, whose probabilities are not drawn a fragment at a time");
  CHECK_FALSE(isLegal(few, logicalOrder(few, packed), findDevice("a100")));
  // Draws take the time of some instructions a score.
  const AttentionExtents far{.b = 4, .h = 16, .j = 4096, .k = 4096};
  const double plain = best(plainAttention(far, DType::f16)),
               dropped = best(droppedAttention(far, DType::f16, dropout));
  CHECK(dropped > 1.1 * plain);
  CHECK(dropped < 1.8 * plain);
}

TEST_CASE("the price of attention by mma.sync follows its work") {
  const auto plain = [](int64_t length, int64_t width) {
    return best(plainAttention({.b = 4, .h = 16, .j = length, .k = length, .p = width, .w = width},
                               DType::f16));
  };
  CHECK(plain(4096, 64) / plain(2048, 64) == Approx(4).epsilon(0.15));
  CHECK(plain(4096, 128) / plain(4096, 64) > 1.3);
  CHECK(plain(4096, 128) / plain(4096, 64) < 2);
  // Between the peak and a third of it: 0.55 TFLOP.
  CHECK(plain(4096, 128) > 4.0 * 4 * 16 * 4096 * 4096 * 128 / 312e12);
  CHECK(plain(4096, 128) < 3 * 4.0 * 4 * 16 * 4096 * 4096 * 128 / 312e12);
  const AttentionExtents e{.b = 4, .h = 16, .j = 4096, .k = 4096};
  CHECK(best(causalAttention(e, DType::f16)) / plain(4096, 64) == Approx(0.53).epsilon(0.1));
  CHECK(best(windowAttention(e, DType::f16, 128, 128)) < plain(4096, 64) / 6);
  // Two loads a score of eight lines each; a table of heads is near in L1.
  AttentionExtents far = e;
  far.distance = 128;
  const double relative = best(relativeAttention(far, DType::f16)),
               gathered = best(disentangledAttention(far, DType::f16));
  const double scores = 4.0 * 16 * 4096 * 4096, multiprocessors = 108;
  CHECK(relative < 1.5 * plain(4096, 64));
  CHECK(gathered > 2 * 1.4e-10 * scores / multiprocessors);
  CHECK(gathered < 4 * 1.4e-10 * scores / multiprocessors);
}

namespace {

/// The cheapest configuration of a kernel on a device, of all families or of one.
struct Chosen {
  Configuration configuration;
  double seconds = 1;
};
Chosen cheapest(const Kernel &kernel, const char *device, std::string_view family = "") {
  const std::unique_ptr<CostModel> model = analyticCostModel(findDevice(device));
  Chosen chosen;
  for (const Configuration &one : nonEmpty(enumerate(kernel, findDevice(device)).legal)) {
    if (!family.empty() && one.knobs.family().name != family) continue;
    if (const double seconds = model->cost(kernel, one).seconds; seconds < chosen.seconds)
      chosen = {one, seconds};
  }
  return chosen;
}

/// Loading keys and values at the copy rate.
double keyValueSeconds(const AttentionExtents &e, const char *device) {
  return double(e.b * e.h * e.k * (e.p + e.w) * 2) / findDevice(device).copyBandwidth;
}

}  // namespace

TEST_CASE("few queries and many keys are priced near the time of keys and values") {
  for (const char *device : {"h200", "a100"})
    for (const AttentionExtents &e :
         {AttentionExtents{.h = 8, .g = 4, .j = 1, .k = 32768, .p = 128, .w = 128},
          {.h = 32, .g = 1, .j = 1, .k = 32768, .p = 128, .w = 128},
          {.h = 8, .g = 4, .j = 4, .k = 32768, .p = 128, .w = 128},
          {.h = 8, .g = 4, .j = 16, .k = 32769, .p = 128, .w = 128},
          {.b = 3, .h = 7, .g = 3, .j = 9, .k = 40001, .p = 80, .w = 80},
          {.h = 2, .g = 16, .j = 2, .k = 131072, .p = 256, .w = 256},
          {.h = 8, .g = 8, .j = 3, .k = 65536, .p = 64, .w = 64}}) {
      const Kernel kernel = causalAttention(e, DType::f16, true);
      const auto [configuration, seconds] = cheapest(kernel, device);
      INFO(device << ": " << describe(kernel, configuration.knobs) << " of " << e.h << " x " << e.g
                  << " heads, " << e.j << " queries, " << e.k << " keys: " << seconds);
      REQUIRE(configuration.knobs.is<Sm80AttentionKnobs>());
      const auto knobs = configuration.knobs.get<Sm80AttentionKnobs>();
      const AttentionProblem problem = problemOf(kernel, configuration);
      CHECK(knobs.packed == (problem.headsOfGroup > 1 ? 1 : 0));
      CHECK(knobs.splits > 1);
      // Most multiprocessors have a block.
      CHECK(sm80AttentionBlocks(problem, knobs) > 0.85 * findDevice(device).multiprocessors);
      CHECK(seconds > keyValueSeconds(e, device));
      CHECK(seconds < 1.45 * keyValueSeconds(e, device));
    }
}

TEST_CASE("splits pay where blocks are few, and not where they are many or keys few") {
  const auto splits = [](const AttentionExtents &e, const char *device) {
    return cheapest(plainAttention(e, DType::f16), device, "attention-sm80")
        .configuration.knobs.get<Sm80AttentionKnobs>()
        .splits;
  };
  CHECK(splits({.h = 8, .g = 4, .j = 1, .k = 32768, .p = 128, .w = 128}, "h200") >= 16);
  CHECK(splits({.b = 64, .h = 8, .g = 4, .j = 1, .k = 2048, .p = 128, .w = 128}, "h200") == 1);
  CHECK(splits({.b = 4, .h = 16, .j = 1, .k = 128}, "h200") == 1);
  // A window of 4096 keys is a short sequence, whatever lies before it.
  const AttentionExtents e{.h = 8, .g = 4, .j = 2, .k = 65536, .p = 128, .w = 128};
  const double window =
      cheapest(windowAttention(e, DType::f16, 4095, 0), "h200", "attention-sm80").seconds;
  CHECK(window < 0.3 * cheapest(causalAttention(e, DType::f16), "h200").seconds);
}

TEST_CASE("heads that are packed load keys and values once") {
  const AttentionExtents e{.b = 16, .h = 8, .g = 4, .j = 4, .k = 8192, .p = 128, .w = 128};
  const Kernel kernel = causalAttention(e, DType::f16);
  const auto seconds = [&](int packed) {
    const Configuration configuration = logicalOrder(
        kernel, {.tileQueries = 16, .tileKeys = 64, .stages = 3, .packed = packed, .splits = 2});
    return analyticCostModel(findDevice("h200"))->cost(kernel, configuration).seconds;
  };
  CHECK(seconds(0) > 2 * seconds(1));
}

TEST_CASE("queries by the hundred stay with attention-sm90") {
  const auto family = [](const Kernel &kernel) {
    return cheapest(kernel, "h200").configuration.knobs.family().name;
  };
  for (const int64_t length : {512, 4096}) {
    const AttentionExtents e{.b = 4, .h = 8, .g = 4, .j = length, .k = length};
    CHECK(own(causalAttention(e, DType::f16), "h200").empty());
    CHECK(family(causalAttention(e, DType::f16)) == "attention-sm90");
  }
  CHECK(family(plainAttention({.b = 8, .h = 16, .j = 512, .k = 2048}, DType::f16)) ==
        "attention-sm90");
}

TEST_CASE("packed heads and splits that there are not are rejected") {
  const auto rejection = [](const AttentionExtents &e, const Sm80AttentionKnobs &knobs) {
    const Kernel kernel = causalAttention(e, DType::f16);
    return sm80AttentionTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs, {});
  };
  const AttentionExtents grouped{.g = 4, .j = 3, .k = 300}, single{.j = 3, .k = 300};
  CHECK(rejection(grouped, {.tileQueries = 16, .packed = 1, .splits = 5}) == "");
  CHECK(rejection(single, {.tileQueries = 16, .packed = 1}) ==
        "no heads share keys and values: there is nothing to pack");
  CHECK(rejection(single, {.tileQueries = 16, .splits = 6}) == "6 splits of 5 tiles of keys");
  CHECK(rejection(single, {.tileQueries = 16, .splits = 0}) == "0 splits of 5 tiles of keys");
  CHECK(has(rejection({.b = 64, .h = 64, .g = 4, .j = 64, .k = 4096, .p = 128, .w = 128},
                      {.packed = 1, .splits = 64}),
            "bytes of workspace for the splits; the limit is 67108864: take fewer"));
}

TEST_CASE("blocks begin with the tiles that see most of a block mask") {
  const auto text = [&](const AttentionExtents &e, const Sm80AttentionKnobs &knobs) {
    const Kernel kernel = blockAttention(e, DType::f16, "longformer(block=64,window=1,global=1)");
    return codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_80").readable;
  };
  // The first tile sees all blocks of keys, the others two.
  const AttentionExtents e{.b = 2, .h = 2, .g = 2, .j = 512, .k = 512};
  const std::string one = text(e, {.tileQueries = 64, .tileKeys = 64});
  CHECK(has(one, "tileOrder = {{0, 7, 6, 5, 4, 3, 2, 1}}"));
  CHECK(has(one, ".order = weft::sm80::TableOrder<8, 1>{tileOrder}"));
  // Of 32 queries and both heads of a group; of tiles none of which sees twice the mean.
  CHECK(has(text(e, {.tileQueries = 64, .tileKeys = 64, .packed = 1}), "TableOrder<16, 2>"));
  CHECK(has(text({.j = 256, .k = 256}, {.tileQueries = 64, .tileKeys = 64}), "TableOrder<4, 0>"));
  // Tiles that end within the heads of a query, and no table.
  CHECK_FALSE(has(
      text({.h = 2, .g = 3, .j = 512, .k = 512}, {.tileQueries = 64, .tileKeys = 64, .packed = 1}),
      "order"));
  const Kernel causal = causalAttention(e, DType::f16);
  CHECK_FALSE(
      has(codegen::emit(causal, logicalOrder(causal, Sm80AttentionKnobs{}), "sm_80").readable,
          "order"));
}

TEST_CASE("emitted attention says how many heads are packed and blocks share keys") {
  const auto text = [&](const Kernel &kernel, const Sm80AttentionKnobs &knobs) {
    return codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_80").readable;
  };
  const AttentionExtents e{.b = 2, .h = 4, .g = 3, .j = 5, .k = 301};
  const Sm80AttentionKnobs packed{.tileQueries = 16, .packed = 1},
      split{.tileQueries = 16, .packed = 1, .splits = 3};
  const std::string one = text(causalAttention(e, DType::f16), packed),
                    several = text(causalAttention(e, DType::f16), split);
  CHECK(has(one, ".packedHeads = 3}"));
  CHECK(!has(one, "partials"));
  CHECK(has(several, ".packedHeads = 3, .splits = 3}"));
  CHECK(has(several, "__device__ weft::sm80::SplitArrivals<shape, tile> arrivals;"));
  CHECK(has(several, "weft::sm80::SplitPartials<shape, tile> partials = {rows, arrivals};"));
  CHECK(has(several, ".partials = &partials"));
  // Heads times groups, splits, rows; columns and what is known of each row.
  CHECK(workspaceBytesOf(causalAttention(e, DType::f16),
                         logicalOrder(causalAttention(e, DType::f16), split)) ==
        2 * 4 * 3 * 15 * (64 + 4) * 4);
  CHECK(workspaceBytesOf(causalAttention(e, DType::f16),
                         logicalOrder(causalAttention(e, DType::f16), packed)) == 0);
  CHECK(has(several, "<<<24, 128>>>"));
  // Masks of the heads of a group: by a length of each, or the same for all.
  FusedAttention byHead("keys_of_head", e, DType::f16);
  const int lengths = byHead.input("lengths", "hg", DType::i32);
  CHECK(has(text(byHead.build(byHead.padding(byHead.scores(), lengths, {1, 2})), packed),
            ".masksDiffer = true}"));
  CHECK(!has(text(paddedAttention(e, DType::f16, true), packed), "masksDiffer"));
  CHECK(!has(text(biasedAttention(e, DType::f16), packed), "masksDiffer"));
}

TEST_CASE("packed tokens are taken in every layout of whole rows, and sequences named") {
  const Kernel kernel = packedAttention({.b = 4, .h = 3, .g = 2, .j = 150, .k = 150, .tokens = 330},
                                        DType::f16, true, true);
  const std::vector<Configuration> configurations = own(kernel);
  for (const Configuration &configuration : nonEmpty(configurations)) {
    const AttentionProblem problem = problemOf(kernel, configuration);
    REQUIRE(problem.packed);
    // Rows are tokens, of all sequences, so that no head begins elsewhere for its sequence.
    CHECK(problem.q.rows == 330);
    CHECK(problem.q.headStrides.front() == 0);
  }
  const std::string text =
      codegen::emit(kernel, logicalOrder(kernel, {.tileQueries = 64, .tileKeys = 32}), "sm_80")
          .readable;
  CHECK(has(text, ".isPacked = true"));
  CHECK(has(text, "const weft::PackedSequences<4, 6, 1, j, "));
  CHECK(has(text, "const weft::Offset first = sequences.of(number).first;"));
  CHECK(has(text, ".sequences = sequences"));
  CHECK(has(text,
            "weft::zeroUnused<w, b * h * g, shape.isOutputAligned>(sequences, outputRow, "
            "threadIdx.x, 128);"));
}

TEST_CASE("scores that gather from two tables have tiles of few keys, on sm_90a too") {
  const Kernel kernel = disentangledAttention({.distance = 32}, DType::f16);
  for (const char *device : {"a100", "h200"}) {
    for (const Configuration &configuration : nonEmpty(own(kernel, device)))
      CHECK(configuration.knobs.get<Sm80AttentionKnobs>().tileKeys == 32);
  }
  const Sm80AttentionKnobs knobs{.tileQueries = 64, .tileKeys = 64, .stages = 2};
  const AttentionProblem problem = problemOf(kernel, logicalOrder(kernel, knobs));
  const Sm80ScoreNeeds needs = sm80ScoreNeeds(kernel, attentionRegion(kernel).value(), problem);
  CHECK(sm80AttentionTileRejection(problem, knobs, needs) ==
        "64 keys of a warp, whose scores gather from 2 tables; at most 32 fit the registers");
}

TEST_CASE("a plan may name any number of splits that there is, offered or not") {
  const Kernel kernel =
      plainAttention({.h = 8, .g = 4, .j = 1, .k = 32768, .p = 128, .w = 128}, DType::f16);
  const auto isLegal = [&](const Sm80AttentionKnobs &knobs, const char *device) {
    return weft::isLegal(kernel, logicalOrder(kernel, knobs), findDevice(device));
  };
  for (const int splits : {1, 7, 100, 512})
    CHECK(isLegal({.tileQueries = 16, .splits = splits}, "h200"));
  CHECK_FALSE(isLegal({.tileQueries = 16, .splits = 513}, "h200"));
  CHECK_FALSE(isLegal({.tileQueries = 16}, "v100"));
}

TEST_CASE("f32 is taken where both contractions may read it as tf32") {
  const AttentionExtents e{.h = 2, .j = 333, .k = 333};
  const Kernel kernel = inTf32(plainAttention(e, DType::f32, true));
  for (const char *device : {"a100", "h200"})
    for (const Configuration &configuration : nonEmpty(own(kernel, device)))
      CHECK(problemOf(kernel, configuration).operandType == DType::tf32);
  for (const size_t contraction : {size_t(0), kernel.body.size() - 1}) {
    Kernel half = kernel;
    half.body[contraction].attributes.erase("precision");
    CHECK(has(exclusion(half),
              "element type f32; f16 and bf16 are taken (--dtype f16), and f32 "
              "that may be read as tf32 (--tf32)"));
  }
  Device unknown = findDevice("a100");
  unknown.tensorFlops.erase(DType::tf32);
  for (const Exclusion &excluded : nonEmpty(enumerate(kernel, unknown).excluded))
    if (excluded.family == "attention-sm80")
      CHECK(excluded.reason == "a100 names no flop rate of GEMMs of tf32");
  CHECK(has(exclusion(inTf32(plainAttention({.p = 264, .w = 264}, DType::f32))), "at most 256"));
  CHECK(has(exclusion(inTf32(plainAttention({.p = 36, .w = 64}, DType::f32))), "multiples of 8"));
  const codegen::EmittedKernel emitted = codegen::emit(kernel, own(kernel)[0], "sm_80");
  CHECK(emitted.entry == "attention_tf32_2x333x333x64");
  CHECK(has(emitted.text, "weft/sm80_tf32_attention.cuh"));
}

TEST_CASE("tiles of tf32 fit shared memory with elements of four bytes") {
  const auto tiles = [](int64_t width) {
    const Kernel kernel = inTf32(plainAttention({.p = width, .w = width}, DType::f32));
    const AttentionProblem problem = problemOf(kernel, logicalOrder(kernel, {}));
    return sm80AttentionTileChoices(problem, {});
  };
  CHECK(tiles(64).size() >= 4);
  CHECK(std::ranges::all_of(tiles(64), [](const auto &knobs) { return knobs.tileKeys >= 32; }));
  CHECK(tiles(128) == std::vector{Sm80AttentionKnobs{64, 32, 2}});
  CHECK(tiles(256) == std::vector{Sm80AttentionKnobs{32, 16, 2}});
  const auto rejection = [](DType type, const Sm80AttentionKnobs &knobs) {
    const Kernel kernel = inTf32(plainAttention({.p = 128, .w = 128}, type));
    return sm80AttentionTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs, {});
  };
  CHECK(has(rejection(DType::f32, {64, 64, 2}), "163840 bytes of shared memory"));
  CHECK(has(rejection(DType::f32, {64, 48, 2}), "16, 32, 64 and 128 are taken"));
  CHECK(has(rejection(DType::f16, {64, 16, 2}), "keys a tile; 32, 64 and 128 are taken"));
}

TEST_CASE("tf32 takes about twice the time of halves where tensor cores are the bound") {
  for (const int64_t width : {64, 128}) {
    const AttentionExtents e{.b = 4, .h = 16, .j = 4096, .k = 4096, .p = width, .w = width};
    const double tf32 = best(inTf32(plainAttention(e, DType::f32))),
                 halves = best(plainAttention(e, DType::f16));
    CHECK(tf32 > 1.3 * halves);
    CHECK(tf32 < 2.5 * halves);
    CHECK(tf32 > 4.0 * 4 * 16 * 4096 * 4096 * double(width) / 156e12);
  }
  // Few queries: keys and values have twice the bytes.
  const AttentionExtents few{.h = 8, .g = 4, .j = 1, .k = 32768};
  const double ratio =
      best(inTf32(plainAttention(few, DType::f32))) / best(plainAttention(few, DType::f16));
  CHECK(ratio > 1.4);
  CHECK(ratio < 2.2);
}

/// Measured on an H100 (docs/experiments/attention.md).
TEST_CASE("many queries by mma.sync beside WGMMA cost about what they were measured to") {
  const Kernel kernel = samples::causalAttention(
      {.b = 3, .h = 5, .g = 2, .j = 768, .k = 768, .p = 96, .w = 96}, DType::bf16, true);
  LayoutTuple tuple;
  for (const ValueId value : operandValues(kernel))
    tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  const std::unique_ptr<CostModel> model = analyticCostModel(findDevice("h200"));
  for (const auto &[queries, keys, measured] :
       {std::tuple(64, 32, 37.2e-6), {64, 64, 33.3e-6}, {128, 64, 35.2e-6}}) {
    const Sm80AttentionKnobs knobs{.tileQueries = queries, .tileKeys = keys, .stages = 2};
    const double seconds = model->cost(kernel, toConfiguration(kernel, tuple, knobs)).seconds;
    INFO(queries << " x " << keys << ": " << seconds);
    CHECK(std::abs(seconds / measured - 1) < 0.3);
  }
}
