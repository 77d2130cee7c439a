// Fused attention backward on sm_90a: which kernels and layouts it takes, in which tiles, what is
// emitted, what it needs of memory, and how its price grows.
#include "codegen/Emit.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardCost.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"
#include "kernel/Error.h"
#include "kernel/Profile.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"
#include "passes/configure/Margins.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace weft;
using namespace weft::samples;
using weft::test::nonEmpty;

namespace {

std::vector<Configuration> own(const Kernel &kernel, const char *device = "h200") {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, findDevice(device)).legal)
    if (configuration.knobs.is<Sm90AttentionBackwardKnobs>()) result.push_back(configuration);
  return result;
}

std::string exclusion(const Kernel &kernel, const char *device = "h200") {
  for (const Exclusion &excluded : enumerate(kernel, findDevice(device)).excluded)
    if (excluded.family == "attention-backward-sm90") return excluded.reason;
  return "";
}

AttentionBackwardProblem problemOf(const Kernel &kernel, const Configuration &configuration) {
  return *attentionBackwardProblem(kernel, *attentionBackwardRegion(kernel), configuration);
}

Configuration logicalOrder(const Kernel &kernel, const Sm90AttentionBackwardKnobs &knobs) {
  LayoutTuple tuple;
  for (const ValueId value : operandValues(kernel))
    tuple.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
  return toConfiguration(kernel, tuple, knobs);
}

double best(const Kernel &kernel) {
  double least = 1;
  for (const Configuration &one : nonEmpty(own(kernel)))
    least = std::min(least, analyticCostModel(findDevice("h200"))->cost(kernel, one).seconds);
  return least;
}

}  // namespace

TEST_CASE("fused attention backward takes heads of up to 256 columns, in layouts of whole rows") {
  for (const int64_t width : {16, 24, 64, 72, 80, 96, 128, 136, 192, 256}) {
    const Kernel kernel = plainBackward({.j = 333, .k = 333, .p = width, .w = width}, DType::f16);
    INFO(width << " " << exclusion(kernel));
    const std::vector<Configuration> configurations = own(kernel);
    REQUIRE_FALSE(configurations.empty());
    for (const Configuration &configuration : configurations) {
      const AttentionBackwardProblem problem = problemOf(kernel, configuration);
      CHECK(sm90AttentionBackwardLayoutRejection(problem).empty());
      CHECK(sm90AttentionBackwardTileRejection(
                problem, configuration.knobs.get<Sm90AttentionBackwardKnobs>(), 2, false)
                .empty());
      CHECK(problem.dQ.columnStride == 1);
    }
  }
}

TEST_CASE("what fused attention backward does not take is said") {
  const AttentionExtents extents{.j = 64, .k = 64};
  CHECK_THAT(exclusion(plainBackward(extents, DType::f32)), Catch::Contains("f16 and bf16"));
  CHECK(exclusion(plainBackward({.p = 264, .w = 64}, DType::f16)) ==
        "heads of 264 and 64 columns; at most 256 are taken");
  CHECK(exclusion(packedBackward({.b = 2, .j = 64, .k = 64, .p = 64, .w = 136, .tokens = 128},
                                 DType::f16, true)) ==
        "heads of 64 and 136 columns over packed tokens; at most 128 are taken there");
  CHECK_THAT(exclusion(plainBackward({.p = 36, .w = 36}, DType::f16)), Catch::Contains("16 bytes"));
  CHECK_THAT(exclusion(plainBackward(extents, DType::f16), "a100"), Catch::Contains("WGMMA"));
}

TEST_CASE("tiles of all heads of keys are offered together where several heads share keys") {
  const Kernel kernel = plainBackward({.j = 333, .k = 333, .p = 128, .w = 128}, DType::f16);
  AttentionBackwardProblem problem = problemOf(kernel, nonEmpty(own(kernel)).front());
  problem.attention.queries = problem.attention.keys = 4676;  // 38 MB of 16 heads: not in L2
  problem.attention.heads = 96;
  const auto groups = [&](int64_t headsOfGroup) {
    problem.attention.headsOfGroup = headsOfGroup;
    std::set<int> found;
    for (const Sm90AttentionBackwardKnobs &knobs :
         nonEmpty(sm90AttentionBackwardTileChoices(problem, 2, false, false, false, 132)))
      if (knobs.gradients == BackwardGradients::together && knobs.headsOfTile == 0)
        found.insert(knobs.headGroup);
    return found;
  };
  CHECK(groups(16) == std::set<int>{1, 6});
  CHECK(groups(1) == std::set<int>{8, 10});  // of 96, 8 leave as many to the last group
}

TEST_CASE("tiles of some heads of a group are offered where there are few of all of them") {
  using Choices = std::set<std::pair<int, int>>;  // heads of a tile, heads taken together
  const auto offered = [](int64_t batch, int64_t groups, int64_t heads, int64_t length) {
    const Kernel kernel = plainBackward(
        {.b = batch, .h = groups, .g = heads, .j = length, .k = length, .p = 64, .w = 64},
        DType::f16);
    Choices found;
    for (const Configuration &configuration : nonEmpty(own(kernel)))
      if (const auto &knobs = configuration.knobs.get<Sm90AttentionBackwardKnobs>();
          knobs.gradients == BackwardGradients::together)
        found.insert({knobs.headsOfTile, knobs.headGroup});
    return found;
  };
  // 24 tiles of 22 heads: about one, two and four tiles of fewer a block of the grid.
  CHECK(offered(1, 1, 22, 2983) == Choices{{0, 1}, {4, 6}, {2, 11}, {1, 22}});
  // As many tiles as blocks, of a prime number of heads; one head a group has no parts.
  CHECK(offered(66, 2, 7, 128) == Choices{{0, 66}, {0, 109}, {0, 132}, {4, 132}, {2, 132}});
  CHECK(offered(1, 8, 1, 512) == Choices{{0, 8}});
}

TEST_CASE("parts of the gradients of keys take a workspace, a counter and a check of each") {
  const Kernel kernel =
      plainBackward({.b = 2, .h = 2, .g = 3, .j = 300, .k = 301, .p = 64, .w = 48}, DType::f16);
  const Sm90AttentionBackwardKnobs whole{.tileQueries = 64},
      parts{.tileQueries = 64, .headsOfTile = 2};
  const auto bytes = [&](const Sm90AttentionBackwardKnobs &knobs) {
    return workspaceBytesOf(kernel, logicalOrder(kernel, knobs));
  };
  // Three tiles of four heads of keys, two parts of 128 keys and 64 + 48 columns each.
  CHECK(bytes(parts) - bytes(whole) == 3 * 4 * 2 * 128 * (64 + 48) * 4);
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, logicalOrder(kernel, parts), "sm_90a");
  CHECK(emitted.readable.find(".headGroup = 1, .headsOfTile = 2}") != std::string::npos);
  CHECK(emitted.readable.find("weft::sm90::Semaphores<24> partSemaphores;") != std::string::npos);
  CHECK(emitted.readable.find("::partSemaphores == 24") != std::string::npos);
  CHECK(codegen::emit(kernel, logicalOrder(kernel, whole), "sm_90a")
            .readable.find("partSemaphores") == std::string::npos);
  const AttentionBackwardProblem problem = problemOf(kernel, logicalOrder(kernel, parts));
  const auto rejection = [&](const Sm90AttentionBackwardKnobs &knobs) {
    return sm90AttentionBackwardTileRejection(problem, knobs, 2, false);
  };
  CHECK(rejection(parts).empty());
  CHECK(rejection({.tileQueries = 64, .headsOfTile = 3}) ==
        "3 heads a tile; fewer than the 3 that share keys are taken");
  CHECK(rejection({.gradients = BackwardGradients::apart,
                   .tileQueries = 64,
                   .tileKeys = 64,
                   .headsOfTile = 2}) ==
        "2 heads a tile; divisors of the 3 that share keys are taken");
}

TEST_CASE("gradients apart take parts of a group, and a workspace for them") {
  const AttentionExtents e{.b = 1, .h = 2, .g = 4, .j = 300, .k = 300, .p = 64, .w = 48};
  const std::string pattern = "bigbird(block=64,seed=0)";
  const auto offered = [](const Kernel &kernel) {
    std::set<int> found;
    for (const Configuration &configuration : nonEmpty(own(kernel)))
      if (const auto &knobs = configuration.knobs.get<Sm90AttentionBackwardKnobs>();
          knobs.gradients == BackwardGradients::apart)
        found.insert(knobs.headsOfTile);
    return found;
  };
  const Kernel blocks = blockBackward(e, DType::f16, pattern);
  CHECK(offered(blocks) == std::set<int>{0, 1, 2});
  CHECK(offered(causalBackward(e, DType::f16)) == std::set<int>{0, 1, 2});
  AttentionExtents many = e;
  many.b = 48;  // two tiles of keys a multiprocessor without parts
  CHECK(offered(causalBackward(many, DType::f16)) == std::set<int>{0});
  CHECK(offered(blockBackward(many, DType::f16, pattern)) == std::set<int>{0, 1, 2});
  // 64 parts of 2100 keys would take 69 MB, four take 4.
  const AttentionExtents one{.b = 1, .h = 1, .g = 64, .j = 2100, .k = 2100, .p = 64, .w = 64};
  CHECK(offered(causalBackward(one, DType::f16)) == std::set<int>{0, 16, 32});
  CHECK(offered(blockBackward({.b = 1, .h = 8, .j = 300, .k = 300}, DType::f16, pattern)) ==
        std::set<int>{0});
  Sm90AttentionBackwardKnobs knobs{
      .gradients = BackwardGradients::apart, .tileQueries = 64, .tileKeys = 64, .headsOfTile = 2};
  // Five tiles of two heads of keys, two parts of 64 keys and 64 + 48 columns each.
  CHECK(workspaceBytesOf(blocks, logicalOrder(blocks, knobs)) == 5 * 2 * 2 * 64 * (64 + 48) * 4);
  const codegen::EmittedKernel parts = codegen::emit(blocks, logicalOrder(blocks, knobs), "sm_90a");
  for (const char *text :
       {"weft::sm90::splitBackwardOfParts<weft::half, shape, tile, 2>(weft::sm90::KeyParts{sums, "
        "partSemaphores.of}, ",
        ".headsOfGroup = 2", "weft::sm90::Semaphores<10> partSemaphores;", "::semaphores == 10"})
    CHECK_THAT(parts.readable, Catch::Contains(text));
  knobs.headsOfTile = 0;
  CHECK(workspaceBytesOf(blocks, logicalOrder(blocks, knobs)) == 0);
  const codegen::EmittedKernel whole = codegen::emit(blocks, logicalOrder(blocks, knobs), "sm_90a");
  CHECK_THAT(whole.readable, !Catch::Contains("arts"));
}

TEST_CASE("a table saves groups of heads in the backward pass what it saves equal heads") {
  const auto priced = [](int64_t groups, int64_t heads, bool isSparse) {
    const AttentionExtents e{
        .b = 1, .h = groups, .g = heads, .j = 4096, .k = 4096, .p = 64, .w = 64};
    return best(isSparse ? blockBackward(e, DType::f16, "bigbird(block=64,seed=0)")
                         : plainBackward(e, DType::f16));
  };
  const double equal = priced(8, 1, true);
  CHECK(equal < 0.5 * priced(8, 1, false));
  for (const auto &[groups, heads] : {std::pair<int64_t, int64_t>{4, 2}, {2, 4}, {1, 8}}) {
    CHECK(priced(groups, heads, true) < 1.2 * equal);
    CHECK(priced(groups, heads, true) < 0.5 * priced(groups, heads, false));
  }
}

TEST_CASE("sums in any order are offered, priced and taken where a plan may have them alone") {
  Device device = findDevice("h200");
  device.mayBeNondeterministic = true;
  const auto unordered = [&](const Kernel &kernel) {
    std::vector<Configuration> result;
    for (const Configuration &one : enumerate(kernel, device).legal)
      if (one.knobs.is<Sm90AttentionBackwardKnobs>() && !isDeterministic(one.knobs))
        result.push_back(one);
    return result;
  };
  const AttentionExtents extents{.b = 1, .h = 2, .j = 2048, .k = 2048};
  const Kernel plain = plainBackward(extents, DType::f16),
               causal = causalBackward(extents, DType::f16),
               table = blockBackward(extents, DType::f16, "longformer(block=64,window=1,global=1)");
  for (const Configuration &one : nonEmpty(own(plain))) CHECK(isDeterministic(one.knobs));
  // Where all tiles run at once nothing hides their semaphores, and under a table they wait for
  // those of the longest one.
  const AttentionExtents waves{.b = 4, .h = 4, .j = 2048, .k = 2048};
  for (const auto &[kernel, leastShare] : {std::pair(plainBackward(waves, DType::f16), 0.85),
                                           {causalBackward(waves, DType::f16), 0.8},
                                           {plain, 0.6},
                                           {causal, 0.6},
                                           {table, 0.5}}) {
    const auto prices = analyticCostModel(device);
    for (Configuration one : nonEmpty(unordered(kernel))) {
      CHECK(isLegal(kernel, one, findDevice("h200")));  // a plan that has them may be read
      const double seconds = prices->cost(kernel, one).seconds;
      one.knobs = withOtherDeterminism(one.knobs).value();
      CHECK(isDeterministic(one.knobs));
      const double ordered = prices->cost(kernel, one).seconds;
      CHECK(seconds < ordered);
      CHECK(seconds > leastShare * ordered);
    }
  }
  // Keys of one tile, and gradients apart: the bits are fixed, and nothing is to be gained.
  CHECK(unordered(plainBackward({.b = 8, .h = 16, .j = 512, .k = 128}, DType::f16)).empty());
  const AttentionBackwardProblem problem = problemOf(plain, logicalOrder(plain, {}));
  CHECK_THAT(sm90AttentionBackwardTileRejection(problem,
                                                {.gradients = BackwardGradients::apart,
                                                 .sums = GradientSums::unordered,
                                                 .tileQueries = 64,
                                                 .tileKeys = 64},
                                                2, false),
             Catch::Contains("gradients apart have none in the workspace"));
  const codegen::EmittedKernel any = codegen::emit(
                                   plain, logicalOrder(plain, {.sums = GradientSums::unordered}),
                                   "sm_90a"),
                               fixed = codegen::emit(plain, logicalOrder(plain, {}), "sm_90a");
  CHECK(any.readable.find(".areSumsOrdered = false}") != std::string::npos);
  CHECK(fixed.readable.find("areSumsOrdered") == std::string::npos);
  CHECK(any.launch.workspaceBytes == fixed.launch.workspaceBytes);
}

TEST_CASE("measured sums in any order are chosen among where a plan may have them alone") {
  const Kernel kernel = plainBackward({.b = 1, .h = 2, .j = 512, .k = 512}, DType::f16);
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  for (const GradientSums sums : gradientSums)
    addMeasurement(profile, kernel, logicalOrder(kernel, {.sums = sums}),
                   {.seconds = 1e-4, .n = 9, .familyVersion = sm90AttentionBackwardFamily.version});
  for (const bool isAdmitted : {false, true}) {
    Device device = findDevice("h200");
    device.mayBeNondeterministic = isAdmitted;
    const auto prices = measuredCostModel(device, profile, "profile p", false);
    const std::vector<PricedConfiguration> &rows = prices->measured(kernel);
    CHECK(std::ranges::count_if(rows, [](const auto &row) { return row.cost.measured; }) ==
          (isAdmitted ? 2 : 1));
    CHECK(isDeterministic(rows.front().configuration.knobs));
    CHECK(std::ranges::any_of(rows, [](const auto &row) {
            return !isDeterministic(row.configuration.knobs);
          }) == isAdmitted);
    CHECK(prices->measuredAs(kernel, logicalOrder(kernel, {})).size() == (isAdmitted ? 2 : 1));
  }
}

TEST_CASE("a measurement prices the layouts that have none, as far as estimates tell them apart") {
  const Kernel kernel = plainBackward({.b = 1, .h = 2, .j = 512, .k = 512}, DType::f16);
  const Configuration timed = logicalOrder(kernel, {});
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  addMeasurement(profile, kernel, timed,
                 {.seconds = 1e-4, .n = 9, .familyVersion = sm90AttentionBackwardFamily.version});
  const Device device = findDevice("h200");
  const auto prices = measuredCostModel(device, profile, "profile p", false);
  const auto analytic = analyticCostModel(device);
  const double ofEstimate = 1e-4 / analytic->cost(kernel, timed).seconds;
  size_t others = 0;
  for (const PricedConfiguration &row : nonEmpty(prices->measured(kernel))) {
    CHECK(row.configuration.knobs == timed.knobs);
    CHECK(prices->cost(kernel, row.configuration).seconds == row.cost.seconds);
    if (row.cost.measured) {
      CHECK(row.cost.seconds == 1e-4);
      continue;
    }
    ++others;
    CHECK(row.cost.margin == Approx(margins::attentionBackwardLayouts));
    CHECK(row.cost.seconds ==
          Approx(ofEstimate * analytic->cost(kernel, row.configuration).seconds *
                 (1 + margins::attentionBackwardLayouts)));
  }
  CHECK(others > 100);
  // Knobs without a measurement are estimates as before; with --strict nothing else is offered.
  const Configuration untimed = logicalOrder(kernel, {.tileQueries = 64});
  CHECK(prices->cost(kernel, untimed).seconds ==
        Approx(analytic->cost(kernel, untimed).seconds * (1 + margins::besideMeasurements)));
  CHECK(measuredCostModel(device, profile, "profile p", true)->measured(kernel).size() == 1);
}

TEST_CASE("a stored gradient of scores takes its bytes and a function") {
  const AttentionExtents extents{.b = 4, .h = 8, .j = 1024, .k = 1024};
  const Kernel stored = biasedBackward(extents, DType::f16, true),
               kept = biasedBackward(extents, DType::f16);
  CHECK(stored.necessaryBytes() - kept.necessaryBytes() == int64_t(4) * 8 * 1024 * 1024 * 2);
  CHECK(best(stored) > 1.1 * best(kept));
  CHECK(best(stored) < 2 * best(kept));  // masked blocks are still skipped
  for (const Configuration &one : nonEmpty(own(stored)))
    if (const auto &knobs = one.knobs.get<Sm90AttentionBackwardKnobs>();
        knobs.gradients == BackwardGradients::together)
      CHECK(knobs.tileQueries == 64);
  const auto textOf = [&](const Kernel &kernel, BackwardGradients gradients) {
    return codegen::emit(
               kernel,
               logicalOrder(kernel, {.gradients = gradients, .tileQueries = 64, .tileKeys = 128}),
               "sm_90a")
        .readable;
  };
  const std::string together = textOf(stored, BackwardGradients::together),
                    apart = textOf(stored, BackwardGradients::apart);
  for (const std::string &text : {together, apart}) {
    CHECK(text.find(".storeScores = storeScores") != std::string::npos);
    CHECK(text.find(".coverage = coverage") != std::string::npos);
  }
  CHECK(together.find("weft::storeScores(d_scores + place, weft::Offset(1024), pair") !=
        std::string::npos);
  CHECK(apart.find("weft::storeScorePair(d_scores + place, pair)") != std::string::npos);
  CHECK(textOf(kept, BackwardGradients::apart).find("storeScores") == std::string::npos);
}

TEST_CASE("an element for each score is loaded without a condition, and priced") {
  const AttentionExtents extents{.b = 4, .h = 8, .j = 1001, .k = 1001};
  const Kernel biased = biasedBackward(extents, DType::f16);
  for (const BackwardGradients gradients :
       {BackwardGradients::together, BackwardGradients::apart, BackwardGradients::single}) {
    const std::string text =
        codegen::emit(
            biased,
            logicalOrder(biased, {.gradients = gradients, .tileQueries = 64, .tileKeys = 128}),
            "sm_90a")
            .readable;
    CHECK_THAT(text, Catch::Contains("= weft::loadOne(bias + "));
    // Rows are asked for behind the last query, too.
    CHECK_THAT(text, Catch::Contains("query < j ? weft::loadOne(log_sums + "));
  }
  CHECK(best(biased) > 1.3 * best(causalBackward(extents, DType::f16)));
  // Gradients of 128 columns that are stored leave no register for loads in front.
  AttentionExtents wide = extents;
  wide.p = wide.w = 128;
  for (const bool isStored : {false, true}) {
    const Kernel kernel = biasedBackward(wide, DType::f16, isStored);
    CHECK_THAT(
        codegen::emit(kernel, logicalOrder(kernel, {.tileQueries = 64, .tileKeys = 128}), "sm_90a")
            .readable,
        Catch::Contains(isStored ? "= query < j && key < k ? weft::loadOne(bias + "
                                 : "= weft::loadOne(bias + "));
  }
  // Conditions are priced beside what is stored.
  const auto added = [&](AttentionExtents own, int64_t width) {
    own.p = own.w = width;
    const auto secondsOf = [](const Kernel &kernel) {
      return analyticCostModel(findDevice("h200"))
          ->cost(kernel, logicalOrder(kernel, {.tileQueries = 64, .tileKeys = 128}))
          .seconds;
    };
    return secondsOf(biasedBackward(own, DType::f16, true)) -
           secondsOf(biasedBackward(own, DType::f16));
  };
  CHECK(added(extents, 128) > 1.3 * added(extents, 64));
}

TEST_CASE("products and sums of a block fit the registers") {
  using Tiles = std::set<std::pair<int, int>>;  // keys of a tile, queries of a block
  const auto tilesOf = [](const Kernel &kernel, BackwardGradients form) {
    Tiles found;
    for (const Configuration &configuration : nonEmpty(own(kernel)))
      if (const auto &knobs = configuration.knobs.get<Sm90AttentionBackwardKnobs>();
          knobs.gradients == form)
        found.insert({knobs.tileKeys, knobs.tileQueries});
    return found;
  };
  const auto together = [&](int64_t width) {
    return tilesOf(plainBackward({.j = 999, .k = 999, .p = width, .w = width}, DType::bf16),
                   BackwardGradients::together);
  };
  // Queries + columns of keys and of values / 2: at most 192.
  CHECK(together(64) == Tiles{{128, 64}, {128, 128}});
  CHECK(together(80) == Tiles{{128, 64}});
  CHECK(together(128) == Tiles{{128, 64}});
  CHECK(together(16) == Tiles{{128, 128}});
  CHECK(tilesOf(biasedBackward({.j = 300, .k = 300}, DType::f16), BackwardGradients::together) ==
        Tiles{{128, 64}});
  const auto apart = [&](int64_t width, bool hasDropout = false) {
    return tilesOf(plainBackward({.j = 999, .k = 999, .p = width, .w = width}, DType::bf16,
                                 hasDropout ? std::optional(Dropout{0.1, 1}) : std::nullopt),
                   BackwardGradients::apart);
  };
  // Where two blocks share a multiprocessor at most 160, else 192; dropout takes 16 of these.
  CHECK(apart(16) == Tiles{{64, 64}, {128, 64}});
  CHECK(apart(96) == Tiles{{64, 64}, {128, 64}});
  CHECK(apart(128) == Tiles{{64, 32}, {128, 64}});
  CHECK(apart(128, true) == Tiles{{64, 32}, {128, 32}});
  // Beside stored scores dropout takes 16, and 32 of parts of a group.
  const auto rejection = [](int64_t width, const Sm90AttentionBackwardKnobs &knobs,
                            bool hasDropout) {
    const Kernel kernel = biasedBackward(
        {.h = 2, .g = 4, .j = 300, .k = 300, .p = width, .w = width}, DType::f16, true);
    return sm90AttentionBackwardTileRejection(problemOf(kernel, logicalOrder(kernel, knobs)), knobs,
                                              2, hasDropout);
  };
  Sm90AttentionBackwardKnobs parts{
      .gradients = BackwardGradients::apart, .tileQueries = 64, .tileKeys = 128, .headsOfTile = 2};
  CHECK(rejection(96, parts, false) == "");
  CHECK_THAT(rejection(96, parts, true), Catch::Contains("at most 144 are free"));
  parts.headsOfTile = 0;
  CHECK(rejection(96, parts, true) == "");
}

TEST_CASE("tiles of one gradient are offered where heads have more than 128 columns") {
  using Tiles = std::set<std::pair<BackwardGradients, int>>;  // queries of a block
  const auto tilesOf = [](const Kernel &kernel) {
    Tiles found;
    for (const Configuration &configuration : nonEmpty(own(kernel))) {
      const auto &knobs = configuration.knobs.get<Sm90AttentionBackwardKnobs>();
      found.insert({knobs.gradients, knobs.tileQueries});
    }
    return found;
  };
  const auto of = [](int64_t p, int64_t w) {
    return AttentionExtents{.b = 1, .h = 2, .j = 999, .k = 999, .p = p, .w = w};
  };
  const auto single = BackwardGradients::single, apart = BackwardGradients::apart;
  CHECK(tilesOf(plainBackward(of(256, 256), DType::f16)) == Tiles{{single, 64}});
  CHECK(tilesOf(causalBackward(of(192, 192), DType::bf16)) == Tiles{{single, 64}});
  // Both gradients of 320 columns leave registers for 32 queries.
  CHECK(tilesOf(plainBackward(of(192, 128), DType::f16)) == Tiles{{apart, 32}, {single, 64}});
  AttentionExtents group = of(200, 24);
  group.g = 4;
  for (const Configuration &one : nonEmpty(own(plainBackward(group, DType::f16))))
    CHECK(one.knobs.get<Sm90AttentionBackwardKnobs>().headsOfTile == 0);
  CHECK_THAT(sm90AttentionBackwardTileRejection(
                 problemOf(plainBackward(of(192, 64), DType::f16),
                           own(plainBackward(of(192, 64), DType::f16)).front()),
                 {.gradients = apart, .tileQueries = 32, .tileKeys = 64}, 2, false),
             Catch::Contains("tiles of 64 rows, blocks of 64 columns and parts of a group take at "
                             "most 128"));
  CHECK(tilesOf(plainBackward(of(128, 128), DType::f16)).count({single, 64}) == 0);
  // Beside 256 columns dropout, tables and what is read along keys leave registers for 32.
  const Dropout dropout{0.1, 1};
  CHECK(tilesOf(plainBackward(of(256, 256), DType::f16, dropout)) == Tiles{{single, 32}});
  CHECK(tilesOf(blockBackward(of(256, 256), DType::f16, "bigbird(block=64,seed=0)")) ==
        Tiles{{single, 32}});
  CHECK(tilesOf(biasedBackward(of(256, 256), DType::f16)) == Tiles{{single, 32}});
  CHECK(tilesOf(documentBackward(of(256, 256), DType::f16)) == Tiles{{single, 32}});
  CHECK(tilesOf(blockBackward(of(224, 224), DType::f16, "bigbird(block=64,seed=0)")) ==
        Tiles{{single, 64}});
}

TEST_CASE("tiles of one gradient: no workspace, places of operands, and what they cannot have") {
  const Kernel kernel =
      plainBackward({.b = 1, .h = 2, .g = 2, .j = 300, .k = 129, .p = 256, .w = 192}, DType::f16);
  const Sm90AttentionBackwardKnobs knobs{
      .gradients = BackwardGradients::single, .tileQueries = 64, .tileKeys = 128, .headGroup = 2};
  CHECK(workspaceBytesOf(kernel, logicalOrder(kernel, knobs)) == 0);
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_90a");
  // Two tiles of keys and two of values of two heads, three of queries of four.
  CHECK(emitted.launch.grid[0] == 20);
  CHECK(emitted.launch.block[0] == 384);
  for (const char *text :
       {".rows = 128, .columns = 64, .stages = 3, .ownStages = 1,\n    .headGroup = 2}",
        "weft::sm90::singleBackward<weft::half, shape, tile>(weft::sm90::SplitBackwardArgs{",
        "weft/sm90_single_backward.cuh", "::tiles == 20"})
    CHECK_THAT(emitted.readable, Catch::Contains(text));
  const AttentionBackwardProblem problem = problemOf(kernel, logicalOrder(kernel, knobs));
  const auto rejection = [&](Sm90AttentionBackwardKnobs own, bool hasDropout = false) {
    return sm90AttentionBackwardTileRejection(problem, own, 2, hasDropout);
  };
  CHECK(rejection(knobs).empty());
  CHECK(rejection({.tileQueries = 64}) ==
        "heads of 256 and 192 columns; tiles of keys sum gradients of queries of at most 128");
  Sm90AttentionBackwardKnobs other = knobs;
  other.headsOfTile = 1;
  CHECK(rejection(other) == "1 heads a tile; tiles of one gradient take all 2 that share keys");
  other = knobs, other.tileKeys = 64;
  CHECK(rejection(other) == "64 keys a tile; 128 are taken");
  other = knobs, other.tileQueries = 128;
  CHECK_THAT(rejection(other), Catch::Contains("32 and 64 are taken"));
  other = knobs, other.sums = GradientSums::unordered;
  CHECK_THAT(rejection(other), Catch::Contains("gradients apart have none in the workspace"));
  CHECK_THAT(rejection(knobs, true), Catch::Contains("at most 176 are free"));
  // Of as many bytes of rows that three places of 64 columns do not fit.
  CHECK_THAT(sm90AttentionBackwardTileRejection(
                 problemOf(plainBackward({.p = 256, .w = 256}, DType::f16),
                           logicalOrder(plainBackward({.p = 256, .w = 256}, DType::f16), knobs)),
                 knobs, 4, false),
             Catch::Contains("bytes of shared memory"));
}

TEST_CASE("heads of more than 128 columns train by WGMMA at a lower price than by mma.sync") {
  const auto best = [](const Kernel &kernel, const char *family) {
    const auto prices = analyticCostModel(findDevice("h200"));
    std::pair<double, Knobs> least(1, Sm90AttentionBackwardKnobs{});
    for (const Configuration &one : enumerate(kernel, findDevice("h200")).legal)
      if (one.knobs.family().name == std::string_view(family))
        least = std::min(least, {prices->cost(kernel, one).seconds, one.knobs},
                         [](const auto &a, const auto &b) { return a.first < b.first; });
    return least;
  };
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{256, 256}, {192, 192}, {192, 128}})
    for (const int64_t length : {512, 4096})
      for (const bool isCausal : {false, true}) {
        const AttentionExtents e{.b = 4, .h = 8, .j = length, .k = length, .p = p, .w = w};
        const Kernel kernel =
            isCausal ? causalBackward(e, DType::f16) : plainBackward(e, DType::f16);
        const auto [seconds, knobs] = best(kernel, "attention-backward-sm90");
        const double other = best(kernel, "attention-backward-sm80").first;
        INFO(p << " " << w << ", " << length << " keys: " << describe(kernel, knobs));
        CHECK(seconds < 0.7 * other);
        CHECK(seconds > 0.3 * other);
      }
}

TEST_CASE("gradients apart take no workspace, and what they cannot have is said") {
  const AttentionExtents extents{.b = 2, .h = 4, .j = 300, .k = 301};
  const Sm90AttentionBackwardKnobs knobs{.gradients = BackwardGradients::apart,
                                         .tileQueries = 64,
                                         .tileKeys = 64,
                                         .headGroup = 2,
                                         .blocks = 264};
  const Kernel plain = plainBackward(extents, DType::f16),
               table = blockBackward({.b = 1, .h = 2, .j = 700, .k = 700}, DType::f16,
                                     "longformer(block=64,window=1,global=1)");
  CHECK(workspaceBytesOf(plain, logicalOrder(plain, knobs)) == 0);
  const codegen::EmittedKernel emitted = codegen::emit(plain, logicalOrder(plain, knobs), "sm_90a");
  CHECK(std::ranges::count(emitted.parameters, ParameterKind::workspace,
                           &codegen::Parameter::kind) == 0);
  // Five tiles of keys and five of queries of eight heads.
  CHECK(emitted.launch.grid[0] == 80);
  CHECK(emitted.readable.find("Semaphores<") == std::string::npos);
  CHECK(emitted.readable.find("keyOrder") == std::string::npos);
  // Only the first tile sees all of the other side: of all heads it is taken first.
  const codegen::EmittedKernel ordered = codegen::emit(table, logicalOrder(table, knobs), "sm_90a");
  CHECK(ordered.readable.find(".longKeyTiles = 1, .longQueryTiles = 1") != std::string::npos);

  const AttentionBackwardProblem problem = problemOf(plain, logicalOrder(plain, knobs));
  const auto rejection = [&](int tileQueries, int tileKeys) {
    return sm90AttentionBackwardTileRejection(
        problem,
        {.gradients = BackwardGradients::apart, .tileQueries = tileQueries, .tileKeys = tileKeys},
        2, false);
  };
  CHECK(rejection(64, 64).empty());
  CHECK_THAT(rejection(128, 64), Catch::Contains("32 and 64 are taken where gradients are apart"));
  CHECK_THAT(rejection(64, 192), Catch::Contains("64 and 128 are taken"));
}

TEST_CASE("gradients apart are chosen under a table that leaves few scores, and not without one") {
  const AttentionExtents extents{.b = 1, .h = 16, .j = 4096, .k = 4096};
  const auto chosen = [](const Kernel &kernel) {
    const auto prices = analyticCostModel(findDevice("h200"));
    return std::ranges::min(
               nonEmpty(own(kernel)), {},
               [&](const Configuration &one) { return prices->cost(kernel, one).seconds; })
        .knobs.get<Sm90AttentionBackwardKnobs>()
        .gradients;
  };
  CHECK(chosen(plainBackward(extents, DType::f16)) == BackwardGradients::together);
  CHECK(chosen(causalBackward(extents, DType::f16)) == BackwardGradients::together);
  CHECK(chosen(blockBackward(extents, DType::f16, "random(block=64,density=0.05,seed=0)")) ==
        BackwardGradients::apart);
}

TEST_CASE("emitted attention backward names its tensors, its workspace and its semaphores") {
  const Sm90AttentionBackwardKnobs knobs{.tileQueries = 128, .headGroup = 2};
  const auto emitted = [&](const Kernel &kernel) {
    return codegen::emit(kernel, logicalOrder(kernel, knobs), "sm_90a");
  };
  const AttentionExtents extents{.b = 2, .h = 4, .j = 300, .k = 301};
  const codegen::EmittedKernel plain = emitted(plainBackward(extents, DType::f16)),
                               causal = emitted(causalBackward(extents, DType::f16)),
                               dropped =
                                   emitted(plainBackward(extents, DType::f16, Dropout{0.1, 1}));
  CHECK(plain.readable.find(".coverage") == std::string::npos);
  CHECK(plain.readable.find(".dropout") == std::string::npos);
  CHECK(causal.readable.find(".coverage = coverage") != std::string::npos);
  CHECK(dropped.readable.find(".dropout = ") != std::string::npos);
  for (const codegen::EmittedKernel &one : {plain, causal, dropped}) {
    CHECK(one.readable.find("__device__ unsigned tilesTaken;") != std::string::npos);
    // 8 heads of three blocks of queries.
    CHECK(one.readable.find("__device__ weft::sm90::Semaphores<24> semaphores;") !=
          std::string::npos);
    CHECK(std::ranges::count(one.parameters, ParameterKind::workspace, &codegen::Parameter::kind) ==
          1);
  }
}

TEST_CASE("the sums of the queries' gradient take a workspace that grows with the queries") {
  const auto bytes = [](int64_t queries, int64_t width, int tileQueries) {
    const Kernel kernel =
        plainBackward({.b = 2, .h = 3, .j = queries, .k = 64, .p = width, .w = width}, DType::f16);
    const Sm90AttentionBackwardKnobs knobs{.tileQueries = tileQueries};
    return workspaceBytesOf(kernel, logicalOrder(kernel, knobs));
  };
  // Six heads, blocks of 128 or 64 queries, panels of 64 columns, four bytes.
  CHECK(bytes(256, 64, 128) == 6 * 256 * 64 * 4);
  CHECK(bytes(257, 64, 128) == 6 * 384 * 64 * 4);
  CHECK(bytes(257, 64, 64) == 6 * 320 * 64 * 4);
  CHECK(bytes(64, 80, 64) == 6 * 64 * 128 * 4);
}

TEST_CASE("few causal heads together wait for each other, and many of one head fit L2 or not") {
  const auto priced = [](const Kernel &kernel, int headGroup) {
    const Sm90AttentionBackwardKnobs knobs{
        .tileQueries = 128, .tileKeys = 128, .headGroup = headGroup, .blocks = 132};
    return analyticCostModel(findDevice("h200"))->cost(kernel, logicalOrder(kernel, knobs)).seconds;
  };
  const AttentionExtents extents{.b = 19, .h = 15, .j = 1609, .k = 1609, .p = 64, .w = 64};
  const Kernel causal = causalBackward(extents, DType::f16),
               plain = plainBackward(extents, DType::f16);
  CHECK(priced(causal, 5) > 1.4 * priced(causal, 57));
  CHECK(priced(causal, 12) > 1.15 * priced(causal, 57));
  CHECK(priced(causal, 12) < 1.35 * priced(causal, 57));
  CHECK(priced(plain, 12) == priced(plain, 57));
  // 122 MB in flight of 64 heads: GEMMs hide most of what is loaded again.
  const Kernel wide =
      causalBackward({.b = 2, .h = 32, .j = 4096, .k = 4096, .p = 128, .w = 128}, DType::f16);
  CHECK(priced(wide, 29) < 1.15 * priced(wide, 8));
}

TEST_CASE("prices of attention backward grow with scores, and masks save what they exclude") {
  const AttentionExtents small{.b = 8, .h = 16, .j = 1024, .k = 1024},
      large{.b = 8, .h = 16, .j = 2048, .k = 2048};
  const double one = best(plainBackward(small, DType::f16)),
               four = best(plainBackward(large, DType::f16));
  CHECK(four > 3.5 * one);
  CHECK(four < 4.2 * one);
  const double causal = best(causalBackward(large, DType::f16));
  CHECK(causal < 0.65 * four);
  CHECK(causal > 0.45 * four);
  CHECK(best(windowBackward(large, DType::f16, 128, 0)) < 0.4 * causal);
}

TEST_CASE("heads in flight that L2 does not hold are charged for what is read again") {
  const auto price = [](const Kernel &kernel, int headGroup, int headsOfTile) {
    const Sm90AttentionBackwardKnobs knobs{
        .tileQueries = 64, .headGroup = headGroup, .headsOfTile = headsOfTile};
    return analyticCostModel(findDevice("h200"))->cost(kernel, logicalOrder(kernel, knobs)).seconds;
  };
  // 96 heads of 4.8 MB each: all in flight, or ten.
  const Kernel large = causalBackward(
      {.b = 6, .h = 1, .g = 16, .j = 4676, .k = 4676, .p = 128, .w = 128}, DType::f16);
  CHECK(price(large, 18, 6) > 1.2 * price(large, 5, 2));
  // Of 192 queries L2 holds all heads, so that fewer parts are the cheaper ones.
  const Kernel small =
      causalBackward({.b = 15, .h = 1, .g = 13, .j = 192, .k = 192, .p = 64, .w = 64}, DType::f16);
  CHECK(price(small, 75, 3) < price(small, 132, 1));
}

TEST_CASE("maps of packed tokens begin in front of them and say where a sequence ends") {
  const Kernel kernel = packedBackward(
      {.b = 16, .h = 6, .g = 2, .j = 512, .k = 512, .tokens = 8192}, DType::f16, true);
  std::set<Sm90AttentionBackwardKnobs> tiles;
  for (const Configuration &configuration : nonEmpty(own(kernel))) {
    const auto &knobs = configuration.knobs.get<Sm90AttentionBackwardKnobs>();
    CHECK(knobs.gradients == BackwardGradients::together);
    tiles.insert(knobs);
  }
  const Configuration chosen = logicalOrder(kernel, *tiles.begin());
  CHECK(sm90AttentionBackwardTileRejection(
            problemOf(kernel, chosen), {.gradients = BackwardGradients::apart, .tileQueries = 64},
            2, false) == "gradients apart, over packed tokens");
  // Sequences end anywhere, so that scores behind their ends are asked for.
  CHECK(sm90AttentionBackwardLoadsUnderConditions(problemOf(kernel, chosen), *tiles.begin()));
  const Kernel biased = biasedBackward({.j = 300, .k = 77}, DType::f16, true);
  const Sm90AttentionBackwardKnobs knobs{.tileQueries = 64};
  CHECK_FALSE(sm90AttentionBackwardLoadsUnderConditions(
      problemOf(biased, logicalOrder(biased, knobs)), knobs));
  const codegen::EmittedKernel emitted = codegen::emit(kernel, chosen, "sm_90a");
  int maps = 0;
  for (const codegen::Parameter &parameter : nonEmpty(emitted.parameters)) {
    if (!parameter.map) continue;
    ++maps;
    const TensorMap &map = *parameter.map;
    CHECK(map.extents.back() == 8192 + 1);
    CHECK(map.extents[1] == 512);
    CHECK(map.strides.back() == map.strides[0]);
    CHECK(map.shift == 512 * map.strides[0]);
    CHECK(map.box.back() == 1);
  }
  CHECK(maps == 7);
  for (const char *text :
       {"weft::sm90::packedAttentionBackward<", "weft::zeroUnused<", "weft::PackedSequences<16, "})
    CHECK(emitted.text.find(text) != std::string::npos);
  // Without packing no map is shifted.
  const Kernel plain = plainBackward({.b = 2, .h = 6, .j = 512, .k = 512}, DType::f16);
  const codegen::EmittedKernel whole = codegen::emit(plain, nonEmpty(own(plain)).front(), "sm_90a");
  for (const codegen::Parameter &parameter : nonEmpty(whole.parameters))
    if (parameter.map) CHECK(parameter.map->shift == 0);
}

TEST_CASE(
    "packed tokens with another row that is not packed, or a stored gradient, are not taken") {
  FusedAttentionBackward backward("backward", {.b = 2, .j = 64, .k = 64, .tokens = 128},
                                  DType::f16);
  const int more = backward.input("more", "bhgj", DType::f32);
  const auto same = [](ValueId value) { return value; };
  const Kernel kernel = backward.build(same, [&](int d) {
    return backward.map("add", "{0} + {1}", {d, more}, "d_scores");
  });
  CHECK(exclusion(kernel) == "'more' is of rows and not packed, as queries are");
  FusedAttentionBackward storing("backward", {.b = 2, .j = 64, .k = 64, .tokens = 128}, DType::f16);
  CHECK(exclusion(storing.build(same, same, std::nullopt, true)) ==
        "'d_s' is stored, over packed tokens");
}
