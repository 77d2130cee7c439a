// Fused attention on sm_90a: which kernels and layouts it takes, in which tiles, what is emitted,
// and how its price grows.
#include "codegen/Emit.h"
#include "codegen/families/attention/TileOrder.h"
#include "codegen/families/attention/VisibleScores.h"
#include "codegen/families/attention_sm90/Sm90AttentionCost.h"
#include "codegen/families/attention_sm90/Sm90AttentionTile.h"
#include "kernel/BlockMask.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

std::vector<Configuration> own(const Kernel &kernel, const char *device = "h200") {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, findDevice(device)).legal)
    if (configuration.knobs.is<Sm90AttentionKnobs>()) result.push_back(configuration);
  return result;
}

std::string exclusion(const Kernel &kernel, const char *device = "h200") {
  for (const Exclusion &excluded : enumerate(kernel, findDevice(device)).excluded)
    if (excluded.family == "attention-sm90") return excluded.reason;
  return "";
}

AttentionProblem problemOf(const Kernel &kernel, const Configuration &configuration) {
  return *attentionProblem(kernel, *attentionRegion(kernel), configuration);
}

Configuration logicalOrder(const Kernel &kernel, const Sm90AttentionKnobs &knobs) {
  LayoutTuple tuple;
  for (const ValueId value : operandValues(kernel))
    tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return toConfiguration(kernel, tuple, knobs);
}

double seconds(const Kernel &kernel, const Configuration &configuration) {
  return analyticCostModel(findDevice("h200"))->cost(kernel, configuration).seconds;
}
bool has(const std::string &text, const char *piece) {
  return text.find(piece) != std::string::npos;
}
double best(const Kernel &kernel) {
  double least = 1;
  for (const Configuration &one : nonEmpty(own(kernel)))
    least = std::min(least, seconds(kernel, one));
  return least;
}

}  // namespace

TEST_CASE("fused attention takes heads of every width up to 256, in layouts of whole rows") {
  for (const int64_t width : {24, 32, 64, 72, 80, 96, 128, 192, 256}) {
    const Kernel kernel = plainAttention({.j = 333, .k = 333, .p = width, .w = width}, DType::f16);
    const std::vector<Configuration> configurations = own(kernel);
    INFO(width << " " << exclusion(kernel));
    REQUIRE_FALSE(configurations.empty());
    for (const Configuration &configuration : configurations) {
      const AttentionProblem problem = problemOf(kernel, configuration);
      CHECK(sm90AttentionLayoutRejection(problem).empty());
      CHECK(sm90AttentionTileRejection(problem, configuration.knobs.get<Sm90AttentionKnobs>(), {})
                .empty());
    }
    // A head dimension that is not the fastest has no whole rows.
    for (const Configuration &configuration : configurations)
      CHECK(problemOf(kernel, configuration).q.columnStride == 1);
  }
}

TEST_CASE("what fused attention does not take is said") {
  const AttentionExtents extents{.j = 64, .k = 64};
  CHECK(exclusion(plainAttention(extents, DType::f32)).find("f16 and bf16") != std::string::npos);
  CHECK(exclusion(plainAttention({.p = 264, .w = 264}, DType::f16)).find("at most 256") !=
        std::string::npos);
  CHECK(exclusion(plainAttention({.p = 16, .w = 16}, DType::f16)) ==
        "values of 16 columns; at least 24 are taken");
  CHECK(exclusion(plainAttention({.p = 36, .w = 36}, DType::f16)).find("16 bytes") !=
        std::string::npos);
  CHECK(exclusion(plainAttention(extents, DType::f16), "a100").find("WGMMA") != std::string::npos);
  CHECK(
      exclusion(disentangledAttention({.p = 136, .w = 136, .distance = 32}, DType::f16)) ==
      "score ops gather from a row for each query or key, for which heads of 136 columns leave no "
      "registers; at most 128 are taken");
  CHECK(exclusion(relativeAttention({.distance = 32}, DType::f16)).empty());
}

TEST_CASE("tiles keep their scores, exponentials and output in registers") {
  const auto widestTile = [](int64_t width, int consumers) {
    const Kernel kernel = plainAttention({.j = 999, .k = 999, .p = width, .w = width}, DType::bf16);
    int widest = 0;
    for (const Configuration &configuration : nonEmpty(own(kernel))) {
      const auto &knobs = configuration.knobs.get<Sm90AttentionKnobs>();
      if (knobs.tileQueries == 64 * consumers) widest = std::max(widest, knobs.tileKeys);
    }
    return widest;
  };
  // The widest blocks of keys that compile without a wait behind every WGMMA: (keys / 2 + keys / 4
  // + columns / 2) of 132 registers with three consumers, of 192 with two.
  CHECK(widestTile(64, 3) == 128);
  CHECK(widestTile(96, 3) == 112);
  CHECK(widestTile(128, 3) == 0);
  CHECK(widestTile(128, 2) == 128);
  CHECK(widestTile(256, 2) == 80);
}

TEST_CASE("heads merge in a tensor's map where they lie so") {
  const Kernel kernel = plainAttention({.b = 4, .h = 3, .g = 2, .j = 100, .k = 100}, DType::f16);
  const AttentionProblem problem = problemOf(kernel, logicalOrder(kernel, {}));
  // Head = (b * 3 + h) * 2 + g. Queries [b, h, g, j, p]: one run; keys [b, h, k, p] lack g.
  CHECK(headDimensions(problem, problem.q) ==
        std::vector<HeadDimension>{{.divisor = 1, .extent = 24, .stride = 6400}});
  CHECK(headDimensions(problem, problem.k) ==
        std::vector<HeadDimension>{{.divisor = 2, .extent = 12, .stride = 6400}});
}

TEST_CASE("emitted attention names its tensors, and what masks leave") {
  const Sm90AttentionKnobs knobs{.tileQueries = 128, .tileKeys = 128, .headGroup = 2};
  const auto text = [&](const Kernel &kernel) {
    return codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_90a").readable;
  };
  const AttentionExtents extents{.b = 2, .h = 4, .j = 300, .k = 301};
  const std::string plain = text(plainAttention(extents, DType::f16)),
                    causal = text(causalAttention(extents, DType::f16)),
                    sloped = text(slopedAttention(extents, DType::f16));
  CHECK(plain.find(".coverage") == std::string::npos);
  CHECK(plain.find(".score") == std::string::npos);
  CHECK(causal.find(".coverage = coverage") != std::string::npos);
  CHECK(causal.find(".scoreWithoutMasks") == std::string::npos);
  CHECK(sloped.find(".scoreWithoutMasks = ") != std::string::npos);
  CHECK(plain.find(".scale = 0.125f") != std::string::npos);
  for (const std::string &one : {plain, causal, sloped})
    CHECK(one.find("__device__ unsigned tilesTaken;") != std::string::npos);
}

TEST_CASE("consumers rotate queries by positions of heads, whatever shares a tile") {
  const AttentionExtents e{.b = 2, .h = 4, .g = 4, .j = 16, .k = 4096, .p = 128, .w = 128};
  const Kernel kernel = rotatedCachedAttention(e, DType::f16, {});
  const auto text = [&](const Sm90AttentionKnobs &knobs) {
    return codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_90a").readable;
  };
  const std::string
      whole = text({.tileQueries = 64, .tileKeys = 80, .ordered = 0, .packed = 1}),
      split = text({.tileQueries = 64, .tileKeys = 80, .ordered = 0, .packed = 1, .splits = 4});
  CHECK(whole.find(
            "weft::sm90::rotated<weft::half>(weft::sm90::queryRotation<rotatedColumns>(positionOf, "
            "frequencyOf), weft::sm90::AttentionArgs{") != std::string::npos);
  CHECK(whole.find("splitPlace") == std::string::npos);
  // A split is a head to tiles, and none to positions.
  CHECK(split.find("return positionOf(weft::sm90::splitPlace<tile.packedHeads, 4>(head).head, "
                   "query);") != std::string::npos);
  CHECK(split.find("queryRotation<rotatedColumns>(positionInSplits, frequencyOf)") !=
        std::string::npos);
  CHECK(exclusion(rotatedAttention({.j = 64, .k = 64, .p = 40, .w = 40}, DType::f16, {})) ==
        "40 elements of a query are turned as halved pairs; a thread turns multiples of 16");
  AttentionExtents tokens = e;
  tokens.k = tokens.j = 300, tokens.tokens = 500;
  CHECK(exclusion(rotatedPackedAttention(tokens, DType::f16, {}, true)).empty());
  const auto rejection = [](int64_t width, const Sm90AttentionKnobs &knobs) {
    const Kernel wide =
        rotatedAttention({.j = 64, .k = 64, .p = width, .w = width}, DType::f16, {});
    return sm90AttentionTileRejection(problemOf(wide, logicalOrder(wide, knobs)), knobs,
                                      {.rotatesQueries = true});
  };
  CHECK(rejection(256, {.tileQueries = 64, .tileKeys = 48, .ordered = 0}) ==
        "values of 256 columns; one consumer that rotates queries has registers for 192");
  CHECK(rejection(256, {.tileQueries = 128, .tileKeys = 80}) == "");
  CHECK(rejection(128, {.tileQueries = 64, .tileKeys = 128, .ordered = 0}) == "");
}

TEST_CASE("turning queries costs less than a rotary kernel, and more where more is turned") {
  const AttentionExtents e{.b = 1, .h = 8, .g = 4, .j = 256, .k = 256, .p = 128, .w = 128};
  const double plain = best(causalAttention(e, DType::f16)),
               part = best(rotatedAttention(e, DType::f16, {.turned = 32}, true)),
               whole = best(rotatedAttention(e, DType::f16, {}, true));
  CHECK(plain + 0.3e-6 < part);
  CHECK(part < whole);
  CHECK(whole < plain + 2e-6);
}

TEST_CASE("dropped probabilities are drawn a fragment at a time") {
  const Kernel kernel =
      droppedAttention({.b = 2, .h = 3, .j = 100, .k = 90}, DType::f16, {.p = 0.25, .stream = 3});
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, logicalOrder(kernel, {.tileQueries = 128, .tileKeys = 64}), "sm_90a");
  const std::string &text = emitted.readable;
  CHECK(text.find("weft::keptFragment(") != std::string::npos);
  CHECK(text.find(".dropout = kept") != std::string::npos);
  CHECK(text.find(".keepScale = 1.33333") != std::string::npos);
  CHECK(text.find("dropThreshold = 16384u") != std::string::npos);
  // The probabilities are [b, h, g, j, k]: a head's slice counts b before h.
  CHECK(text.find("(head / h) * h + head % h") != std::string::npos);
  std::set<ParameterKind> kinds;
  for (const codegen::Parameter &parameter : emitted.parameters) kinds.insert(parameter.kind);
  CHECK(kinds.contains(ParameterKind::dropoutKey));
  CHECK(kinds.contains(ParameterKind::dropoutStream));
}

TEST_CASE("a configuration that cannot run is not emitted") {
  const Kernel kernel = plainAttention({.j = 128, .k = 128, .p = 256, .w = 256}, DType::f16);
  CHECK_THROWS_AS(
      codegen::emit(kernel,
                    logicalOrder(kernel, {.tileQueries = 192, .tileKeys = 128, .queryStages = 2}),
                    "sm_90a"),
      Error);
}

TEST_CASE("the price of fused attention follows its work") {
  const auto plain = [](int64_t length, int64_t width) {
    return best(plainAttention({.b = 4, .h = 16, .j = length, .k = length, .p = width, .w = width},
                               DType::f16));
  };
  // Four times the scores; twice the columns.
  CHECK(plain(8192, 64) / plain(4096, 64) == Approx(4).epsilon(0.1));
  CHECK(plain(4096, 128) / plain(4096, 64) > 1.3);
  CHECK(plain(4096, 128) / plain(4096, 64) < 2);
  // H200: 1.17 ms (d = 64, 32 heads, 4 x 4096), 0.852 ms (d = 128, 16 heads).
  CHECK(best(plainAttention({.b = 4, .h = 32, .j = 4096, .k = 4096}, DType::f16)) ==
        Approx(1.17e-3).epsilon(0.1));
  CHECK(plain(4096, 128) == Approx(0.852e-3).epsilon(0.1));
  // Half of the scores are masked.
  const AttentionExtents extents{.b = 4, .h = 16, .j = 4096, .k = 4096};
  const double causal = best(causalAttention(extents, DType::f16)),
               window = best(windowAttention(extents, DType::f16, 128, 128));
  CHECK(causal / plain(4096, 64) == Approx(0.53).epsilon(0.1));
  CHECK(window < causal / 3);
}

TEST_CASE("consumers share rows where tiles are few, and take what one alone takes there") {
  struct Least {
    double sharing = std::numeric_limits<double>::infinity(), alone = sharing, wide = sharing;
  };
  const auto leastOf = [](const Kernel &kernel) {
    Least least;
    const Device &device = findDevice("h200");
    for (const Configuration &configuration : nonEmpty(own(kernel))) {
      const auto &knobs = configuration.knobs.get<Sm90AttentionKnobs>();
      double &of = knobs.keyConsumers > 0    ? least.sharing
                   : knobs.tileQueries == 64 ? least.alone
                                             : least.wide;
      of = std::min(of, sm90AttentionCost(kernel, configuration, knobs, device).seconds);
    }
    return least;
  };
  const Least narrow = leastOf(plainAttention({.h = 12, .j = 512, .k = 512}, DType::f16)),
              wide = leastOf(
                  plainAttention({.h = 8, .j = 512, .k = 1024, .p = 128, .w = 128}, DType::f16));
  // H200: 6.75 us and 6.58; H100: 184 TFLOP/s, 12.0 us, and tiles of 128 rows 136 TFLOP/s.
  CHECK(narrow.sharing / narrow.alone == Approx(6.75 / 6.58).epsilon(0.1));
  CHECK(wide.sharing / wide.alone == Approx(11.7 / 12.0).epsilon(0.1));
  CHECK(wide.sharing < 0.95 * wide.wide);
  // Many tiles: none are offered. One block of keys: there is nothing to share.
  const auto isOffered = [&](const AttentionExtents &extents) {
    return std::isfinite(leastOf(plainAttention(extents, DType::f16)).sharing);
  };
  CHECK_FALSE(isOffered({.b = 8, .h = 16, .j = 512, .k = 512}));
  CHECK_FALSE(isOffered({.h = 12, .j = 128, .k = 64}));

  const Kernel kernel = plainAttention({.h = 12, .j = 616, .k = 616}, DType::f16);
  const auto rejection = [&](const Sm90AttentionKnobs &knobs) {
    return sm90AttentionTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs, {});
  };
  CHECK(rejection({.tileQueries = 64, .stages = 3, .ordered = 0, .keyConsumers = 3}).empty());
  CHECK(rejection({.tileQueries = 64, .stages = 3, .ordered = 0, .keyConsumers = 2}) ==
        "3 stages for 2 consumers, which take as many each");
  CHECK(has(rejection({.tileQueries = 128, .ordered = 0, .keyConsumers = 2}),
            "share rows of tiles of 128; of tiles of 64 alone"));
  CHECK(has(rejection({.tileQueries = 64, .ordered = 0, .keyConsumers = 1}), "2 and 3 are taken"));
}

TEST_CASE("heads of a group are packed where their queries fill fewer tiles, and take less time") {
  const auto packing = [](const Kernel &kernel) {
    double packed = std::numeric_limits<double>::infinity(), apart = packed;
    const Device &device = findDevice("h200");
    for (const Configuration &configuration : nonEmpty(own(kernel))) {
      const auto &knobs = configuration.knobs.get<Sm90AttentionKnobs>();
      double &least = knobs.packed != 0 ? packed : apart;
      least = std::min(least, sm90AttentionCost(kernel, configuration, knobs, device).seconds);
    }
    return std::pair(packed, apart);
  };
  // 16 queries of 4 heads are the 64 rows of a consumer; apart each head has a tile, of which a
  // quarter is filled.
  const AttentionExtents e{.b = 16, .h = 8, .g = 4, .j = 16, .k = 32768, .p = 128, .w = 128};
  for (const Kernel &kernel :
       {plainAttention(e, DType::f16), causalAttention(e, DType::bf16, true)}) {
    const auto [packed, apart] = packing(kernel);
    CHECK(packed < 0.75 * apart);
    // Keys and values are read once: 2.1 GB.
    const Device &device = findDevice("h200");
    CHECK(packed >= 2 * 16.0 * 8 * 32768 * 128 * 2 / device.copyBandwidth);
  }
  // Tiles that are full without packing have none to save; neither have heads of no group.
  CHECK(std::isinf(
      packing(plainAttention({.b = 2, .h = 2, .g = 4, .j = 1536, .k = 512}, DType::f16)).first));
  CHECK(std::isinf(packing(plainAttention({.b = 2, .h = 8, .j = 16, .k = 512}, DType::f16)).first));
  CHECK(std::isinf(
      packing(plainAttention({.b = 2, .h = 1, .g = 65, .j = 66, .k = 512}, DType::f16)).first));
  CHECK(std::isinf(
      packing(droppedAttention({.g = 4, .j = 16, .k = 512}, DType::f16, {.p = 0.1})).first));

  const auto rejection = [&](const AttentionExtents &extents, const Sm90AttentionKnobs &knobs,
                             const ScoreNeeds &needs = {}) {
    const Kernel kernel = plainAttention(extents, DType::f16);
    return sm90AttentionTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs, needs);
  };
  const Sm90AttentionKnobs knobs{.tileQueries = 64, .tileKeys = 64, .ordered = 0, .packed = 1};
  const AttentionExtents grouped{.b = 2, .g = 4, .j = 16, .k = 300};
  CHECK(rejection(grouped, knobs).empty());
  CHECK(rejection({.b = 2, .j = 16, .k = 300}, knobs) ==
        "no heads share keys and values: there is nothing to pack");
  CHECK(rejection({.g = 65, .j = 66, .k = 300}, knobs) ==
        "65 heads share keys and values; at most 64 are packed into a tile's rows");
  CHECK(has(rejection(grouped, knobs, {.hasDropout = true}), "not drawn a fragment at a time"));
  Sm90AttentionKnobs others = knobs;
  others.headGroup = 6;
  CHECK(rejection(grouped, others) == "tiles of 6 heads together, of which 4 are packed");
  others = knobs, others.tileQueries = 192;
  CHECK(rejection(grouped, others) ==
        "three consumers leave no registers for rows of packed heads");
  others = knobs, others.residents = 3;
  CHECK(has(rejection(grouped, others), "three blocks a multiprocessor leave no registers"));
  const Kernel tokens =
      packedAttention({.b = 4, .h = 2, .g = 2, .j = 16, .k = 16, .tokens = 64}, DType::f16, false);
  CHECK(sm90AttentionTileRejection(problemOf(tokens, logicalOrder(tokens, knobs)), knobs, {}) ==
        "rows of packed heads over packed tokens");
}

TEST_CASE("blocks share the keys of a tile where tiles are few and keys many") {
  const Device device = findDevice("h200");
  // The least price with and without splits, of what the family offers.
  const auto priced = [&](const AttentionExtents &extents) {
    const Kernel kernel = causalAttention(extents, DType::f16);
    std::pair<double, double> least{INFINITY, INFINITY};
    for (const Configuration &configuration : own(kernel)) {
      const auto &knobs = configuration.knobs.get<Sm90AttentionKnobs>();
      double &seconds = knobs.splits > 1 ? least.second : least.first;
      seconds = std::min(seconds, sm90AttentionCost(kernel, configuration, knobs, device).seconds);
    }
    return least;
  };
  const AttentionExtents few{.b = 1, .h = 8, .g = 4, .j = 64, .k = 32768, .p = 128, .w = 128};
  const auto [whole, split] = priced(few);
  CHECK(split < 0.6 * whole);
  // No less than L2 needs for the keys and values of four tiles of 64 rows a group, or two of 128.
  CHECK(split > 2 * 2.0 * 8 * 32768 * 256 / 5.5e12);
  // As many keys as queries, of one head.
  const auto [wholeHead, splitHead] = priced({.b = 1, .h = 1, .j = 4096, .k = 4096});
  CHECK(splitHead < 0.9 * wholeHead);
  // Few keys, few rows: not offered.
  CHECK(std::isinf(priced({.b = 1, .h = 2, .j = 64, .k = 256}).second));
  CHECK(std::isinf(priced({.b = 1, .h = 8, .g = 4, .j = 1, .k = 32768}).second));
  // Tiles that fill the multiprocessors are not split, for whom the join would be in vain.
  CHECK(std::isinf(priced({.b = 32, .h = 8, .j = 512, .k = 4096}).second));
  CHECK(std::isinf(priced({.b = 1, .h = 8, .j = 4096, .k = 4096}).second));

  const auto rejection = [&](const Kernel &kernel, const Sm90AttentionKnobs &knobs,
                             const ScoreNeeds &needs = {}) {
    return sm90AttentionTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs, needs);
  };
  const Kernel kernel = plainAttention(few, DType::f16);
  const Sm90AttentionKnobs knobs{
      .tileQueries = 64, .tileKeys = 64, .ordered = 0, .packed = 1, .splits = 4};
  CHECK(rejection(kernel, knobs).empty());
  CHECK(sm90AttentionTiles(problemOf(kernel, logicalOrder(kernel, knobs)), knobs) == 8 * 4 * 4);
  CHECK(sm90AttentionPartialBytes(problemOf(kernel, logicalOrder(kernel, knobs)), knobs) ==
        8 * 4 * 4 * 128 * (4 + 64) * 4);
  CHECK(rejection(kernel, knobs, {.hasDropout = true}) != "");
  CHECK(rejection(kernel, knobs, {.hasTables = true}) == "splits of keys under block masks");
  Sm90AttentionKnobs others = knobs;
  others.splits = 513;
  CHECK(rejection(kernel, others) == "513 splits of 512 blocks of keys");
  others = knobs, others.tileQueries = 128, others.ordered = 1;
  CHECK(has(rejection(kernel, others), "splits of keys of ordered consumers"));
  others = knobs, others.keyConsumers = 2;
  CHECK(has(rejection(kernel, others), "splits of keys of consumers that share rows"));
  CHECK(
      rejection(plainAttention({.h = 1, .g = 4, .j = 64, .k = 4096, .p = 64, .w = 256}, DType::f16),
                knobs) == "values of 256 columns; splits of keys have registers for 192");
  others = knobs, others.splits = 500;
  CHECK(has(rejection(kernel, others), "bytes of workspace for the splits; the limit is"));

  // A split is a head to tiles and maps; the counters of a launch are the module's, its sums in a
  // workspace.
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_90a");
  CHECK(has(emitted.readable, ".heads = h * g * 4,"));
  CHECK(has(emitted.readable, "weft::sm90::SplitArrivals<shape, tile, 4> arrivals;"));
  CHECK(has(emitted.readable, "<weft::half, shape, tile, 4>({sums, arrivals}, "));
  CHECK(emitted.launch.workspaceBytes == 8 * 4 * 4 * 128 * (4 + 64) * 4);
  CHECK(workspaceBytesOf(kernel, logicalOrder(kernel, {.ordered = 0})) == 0);
  CHECK(has(emitted.readable, "weft::sm90::splitCoverage<tile, 4>(weft::FullCoverage{})"));
  CHECK_FALSE(
      has(codegen::emit(kernel, logicalOrder(kernel, {.ordered = 0}), "sm_90a").readable, "split"));
}

TEST_CASE("packed heads have a dimension of a map to themselves") {
  const Kernel kernel =
      causalAttention({.b = 4, .h = 3, .g = 2, .j = 20, .k = 100}, DType::f16, true);
  const Sm90AttentionKnobs knobs{.tileQueries = 128, .tileKeys = 64, .packed = 1};
  const AttentionProblem problem = problemOf(kernel, logicalOrder(kernel, knobs));
  CHECK(strideOfGroup(problem, problem.q) == 1280);
  CHECK(headDimensions(problem, problem.q, 2) ==
        std::vector<HeadDimension>{{.divisor = 2, .extent = 12, .stride = 2560}});
  CHECK(sm90QueriesOfTile(problem, knobs) == 64);
  CHECK(sm90AttentionTiles(problem, knobs) == 12);
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_90a");
  CHECK(has(emitted.readable, ".packedHeads = 2}"));
  int maps = 0;
  for (const codegen::Parameter &parameter : nonEmpty(emitted.parameters))
    if (parameter.map && (parameter.name == "q_map" || parameter.name == "output_map")) {
      CHECK(parameter.map->extents == std::vector<int64_t>{64, 2, 20, 12});
      CHECK(parameter.map->strides == std::vector<int64_t>{1280, 64, 2560});
      CHECK(parameter.map->box == std::vector<int>{64, 2, 32, 1});
      ++maps;
    }
  CHECK(maps == 2);
  // Masks of the heads of a group that differ, and the same for all.
  FusedAttention byHead("keys_of_head", {.b = 2, .h = 4, .g = 3, .j = 5, .k = 301}, DType::f16);
  const int lengths = byHead.input("lengths", "hg", DType::i32);
  const Kernel differing = byHead.build(byHead.padding(byHead.scores(), lengths, {1, 2}));
  CHECK(has(codegen::emit(differing, logicalOrder(differing, knobs), "sm_90a").readable,
            ".packedHeads = 3, .masksDiffer = true}"));
  // A group of two axes that lie at several strides: no box has its heads.
  AttentionProblem apart = problem;
  apart.headExtents = {4, 3, 2, 2}, apart.headAxes = {0, 1, 2, 3}, apart.headsOfGroup = 4;
  apart.heads = 48;
  apart.q.headStrides = {15360, 5120, 1280, 2560}, apart.output.headStrides = apart.q.headStrides;
  CHECK(
      has(sm90PackedLayoutRejection(apart), "heads of a group of queries lie at several strides"));
  apart.q.headStrides = {15360, 5120, 2560, 1280};
  CHECK(has(sm90PackedLayoutRejection(apart), "of the output lie at several strides"));
  apart.output.headStrides = apart.q.headStrides;
  CHECK(sm90PackedLayoutRejection(apart).empty());
}

TEST_CASE("heads are taken together so that few are never left to the end") {
  CHECK(headsTogether(18, 20) == 18);
  CHECK(headsTogether(33, 24) == 17);
  CHECK(headsTogether(32, 5) == 4);
  CHECK(headsTogether(285, 57) == 57);
  CHECK(headsTogether(7, 5) == 4);
  CHECK(headsTogether(5, 0) == 1);
  // The longest tiles of two heads behind sixteen run alone; without masks all are as long.
  const AttentionExtents extents{.h = 18, .j = 2273, .k = 2273, .p = 128, .w = 128};
  const auto priced = [](const Kernel &kernel, int headGroup) {
    return seconds(kernel, logicalOrder(kernel, {.tileQueries = 128,
                                                 .tileKeys = 128,
                                                 .queryStages = 2,
                                                 .ordered = 1,
                                                 .headGroup = headGroup,
                                                 .blocks = 132}));
  };
  const Kernel causal = causalAttention(extents, DType::f16);
  CHECK(priced(causal, 16) > 1.25 * priced(causal, 18));
  CHECK(priced(causal, 9) > 1.1 * priced(causal, 18));
  const Kernel plain = plainAttention(extents, DType::f16);
  CHECK(priced(plain, 16) == priced(plain, 18));
  const std::vector<Configuration> choices = own(causal);
  for (const Configuration &one : nonEmpty(choices))
    CHECK(one.knobs.get<Sm90AttentionKnobs>().headGroup >= 18);
}

TEST_CASE("blocks that a tile sees are counted") {
  const auto blocks = [](const Kernel &kernel, int64_t queries, int64_t keys) {
    return visibleBlocks(kernel, *attentionRegion(kernel),
                         problemOf(kernel, logicalOrder(kernel, {})), queries, keys);
  };
  const AttentionExtents extents{.j = 1024, .k = 1024};
  const VisibleBlocks causal = blocks(causalAttention(extents, DType::f16), 128, 128);
  CHECK(causal.mean == Approx(4.5));
  CHECK(causal.most == Approx(8));
  CHECK(causal.mixed == Approx(1));
  // 129 keys of a query, of a tile of 128 three blocks at most.
  const VisibleBlocks window = blocks(windowAttention(extents, DType::f16, 64, 64), 128, 128);
  CHECK(window.most == Approx(3));
  CHECK(window.mean > 2.5);
  CHECK(blocks(windowAttention(extents, DType::f16, 64, 64), 64, 64).most == Approx(3));
}

TEST_CASE("what masks leave of the scores is estimated") {
  const auto share = [](const Kernel &kernel) {
    return visibleScores(kernel, *attentionRegion(kernel),
                         problemOf(kernel, logicalOrder(kernel, {})));
  };
  const AttentionExtents extents{.j = 1024, .k = 1024};
  CHECK(share(plainAttention(extents, DType::f16)).share == 1);
  CHECK_FALSE(share(plainAttention(extents, DType::f16)).hasMasks);
  CHECK(share(causalAttention(extents, DType::f16)).share == Approx(0.5).margin(0.03));
  CHECK(share(causalAttention({.j = 512, .k = 1024}, DType::f16)).share ==
        Approx(0.75).margin(0.03));
  CHECK(share(windowAttention(extents, DType::f16, 64, 64)).share == Approx(0.125).margin(0.04));
  // Lengths are known at run time alone.
  CHECK(share(paddedAttention(extents, DType::f16)).share == 1);
  CHECK(share(paddedAttention(extents, DType::f16)).hasMasks);
  CHECK(share(slopedAttention(extents, DType::f16)).valueOps == 1);
}

TEST_CASE("blocks and scores that block masks leave are counted from their tables") {
  const auto countsOf = [](const Kernel &kernel, int64_t queries, int64_t keys) {
    return visibleBlocks(kernel, *attentionRegion(kernel),
                         problemOf(kernel, logicalOrder(kernel, {})), queries, keys);
  };
  const auto shareOf = [](const Kernel &kernel) {
    return visibleScores(kernel, *attentionRegion(kernel),
                         problemOf(kernel, logicalOrder(kernel, {})));
  };
  const AttentionExtents extents{.h = 4, .j = 4096, .k = 4096};
  // 64 rows of tiles: two see all, the others 3 + 2 + 3; two of 32 tiles of 128 queries hold one
  // that sees all.
  const std::string pattern = "bigbird(block=64,window=3,global=2,random=3,seed=0,heads=each)";
  const Kernel bigbird = blockAttention(extents, DType::f16, pattern, true);
  const VisibleScores visible = shareOf(bigbird);
  CHECK(visible.hasMasks);
  CHECK(visible.hasTables);
  CHECK(visible.share == Approx((2 * 64.0 + 62 * 8) / (64 * 64)).margin(0.002));
  const BlockTable &table = blockTable(pattern, 4, 4096, 4096);
  for (const auto &[queries, keys] : {std::pair<int64_t, int64_t>{64, 64}, {128, 128}, {192, 96}}) {
    double seen = 0, mixed = 0, most = 0;
    const int64_t tiles = (4096 + queries - 1) / queries;
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t first = 0; first < 4096; first += queries) {
        double own = 0;
        for (int64_t key = 0; key < 4096; key += keys) {
          const auto found =
              table.coverage(head, first, std::min<int64_t>(first + queries, 4096) - 1, key,
                             std::min<int64_t>(key + keys, 4096) - 1);
          own += found.isAny, mixed += found.isAny && !found.isAll;
        }
        seen += own, most = std::max(most, own);
      }
    const VisibleBlocks counted = countsOf(bigbird, queries, keys);
    CHECK(counted.mean == Approx(seen / double(4 * tiles)));
    CHECK(counted.mixed == Approx(mixed / double(4 * tiles)));
    CHECK(counted.most == most);
  }
  // The two that see all come first, and before other heads; without a table there is no order.
  const auto orderOf = [&](const Kernel &kernel) {
    return sm90AttentionTileOrder(kernel, *attentionRegion(kernel),
                                  problemOf(kernel, logicalOrder(kernel, {})),
                                  {.tileQueries = 64, .tileKeys = 64});
  };
  const TileOrder order = orderOf(bigbird);
  CHECK(order.longTiles == 2);
  REQUIRE(order.tiles.size() == 64);
  CHECK(std::set<int>{order.tiles[0], order.tiles[1]} == std::set<int>{0, 63});
  CHECK(std::set<int>(order.tiles.begin(), order.tiles.end()).size() == 64);
  CHECK(orderOf(causalAttention(extents, DType::f16)).tiles.empty());
  // Beside a causal mask half of the tiles are left.
  const Kernel half =
      blockAttention(extents, DType::f16, "random(block=64,density=0.2,seed=1)", false, true);
  CHECK(shareOf(half).share == Approx(0.1).margin(0.01));
  CHECK(countsOf(half, 64, 64).mean == Approx(6.5).margin(0.7));
  // More tiles than are looked at.
  const AttentionExtents far{.h = 4, .j = 32768, .k = 32768};
  const Kernel wide = blockAttention(far, DType::f16, "random(block=64,density=0.1,seed=1)");
  CHECK(shareOf(wide).share == Approx(0.1).margin(0.002));
  CHECK(countsOf(wide, 64, 64).mean == Approx(51.2).margin(2));
}

TEST_CASE(
    "scores that gather from rows have tiles of few keys, and price decides between families") {
  for (const int64_t width : {32, 64, 128}) {
    const Kernel kernel = disentangledAttention(
        {.b = 4, .h = 12, .j = 512, .k = 512, .p = width, .w = width, .distance = 256}, DType::f16);
    std::set<std::pair<int, int>> tiles;
    for (const Configuration &configuration : nonEmpty(own(kernel))) {
      const auto &knobs = configuration.knobs.get<Sm90AttentionKnobs>();
      tiles.emplace(knobs.tileQueries, knobs.tileKeys);
      CHECK(knobs.residents == 0);
    }
    CHECK(tiles == std::set<std::pair<int, int>>{{64, 32}, {128, 48}});
    CHECK(std::ranges::any_of(enumerate(kernel, findDevice("h200")).legal,
                              [](const Configuration &configuration) {
                                return configuration.knobs.family().name == "attention-sm80";
                              }));
    const auto rejection = [&](const Sm90AttentionKnobs &knobs) {
      const AttentionProblem problem = problemOf(kernel, logicalOrder(kernel, knobs));
      return sm90AttentionTileRejection(
          problem, knobs, scoreNeeds(kernel, attentionRegion(kernel).value(), problem));
    };
    CHECK(
        has(rejection({.tileQueries = 192, .tileKeys = 32}), "three consumers leave no registers"));
    CHECK(has(rejection({.tileQueries = 128, .tileKeys = 64}),
              "64 keys a block leave no registers; at most 48 are taken"));
    CHECK(has(rejection({.tileQueries = 64, .tileKeys = 48}), "at most 32 are taken"));
    CHECK(has(rejection({.tileQueries = 64, .tileKeys = 32, .residents = 3}),
              "three blocks a multiprocessor leave no registers"));
    // Two loads a score of eight lines each.
    const double scores = 4.0 * 12 * 512 * 512;
    CHECK(best(kernel) > 2 * 1.4e-10 * scores / 132);
  }
}

TEST_CASE("documents load segments of all keys of a block without a branch, where registers are") {
  const AttentionExtents extents{.h = 2, .j = 1200, .k = 1000, .hasBounds = true};
  const Kernel kernel = documentAttention(extents, DType::f16);
  const std::string text =
      codegen::emit(kernel, logicalOrder(kernel, {.tileQueries = 128, .tileKeys = 128}), "sm_90a")
          .text;
  INFO(text);
  CHECK(has(text, "weft::smaller(key, a5 - 1)"));
  CHECK(!has(text, "? weft::loadOne"));

  const auto rejection = [](int64_t width, const Sm90AttentionKnobs &knobs) {
    AttentionExtents wide{.h = 2, .j = 1200, .k = 1000, .p = width, .w = width, .hasBounds = true};
    const Kernel one = documentAttention(wide, DType::f16);
    const AttentionProblem problem = problemOf(one, logicalOrder(one, knobs));
    return sm90AttentionTileRejection(problem, knobs,
                                      scoreNeeds(one, attentionRegion(one).value(), problem));
  };
  CHECK(rejection(64, {.tileQueries = 128, .tileKeys = 128}).empty());
  CHECK(rejection(64, {.tileQueries = 64, .tileKeys = 112, .ordered = 0}).empty());
  CHECK(has(rejection(64, {.tileQueries = 64, .tileKeys = 128, .ordered = 0}),
            "128 keys a block of one consumer, under a mask that reads a tensor at queries and at "
            "keys; at most 112 are taken"));
  CHECK(has(rejection(256, {.tileQueries = 128, .tileKeys = 64, .queryStages = 1}),
            "176 registers a thread hold scores"));
}

TEST_CASE("one product into more than 192 columns leaves no registers to a second block") {
  // ptxas wants 150 registers for 240 columns; two blocks of 256 threads have 128.
  const Sm90AttentionKnobs knobs{.tileQueries = 64, .tileKeys = 48, .stages = 2};
  const auto blocksOf = [&](int64_t valueDim) {
    return sm90AttentionResidentBlocks({.headDim = 64, .valueDim = valueDim}, knobs);
  };
  CHECK(blocksOf(128) == 2);
  CHECK(blocksOf(192) == 2);
  CHECK(blocksOf(240) == 1);
}
