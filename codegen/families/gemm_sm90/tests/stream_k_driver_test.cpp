// Tiles whose slices blocks share in stream-K runs: what is rejected and why, that plans and lines
// of a profile carry the knob, and that only rows bring it into selection.
#include "codegen/Emit.h"
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmFamily.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/ConfigurationText.h"
#include "kernel/ContractionRegion.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"
#include "passes/configure/FamilyConfigurations.h"
#include "plan/PlanKnobs.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTokens.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;

namespace {

const Device &device() { return findDevice("h200"); }
constexpr Sm90GemmKnobs streamed{.schedule = Sm90Schedule::cooperative,
                                 .tileM = 128,
                                 .tileN = 128,
                                 .stages = 6,
                                 .epilogueStages = 2,
                                 .streamK = 1};

/// 192 tiles of 128 x 128 and 64 k-tiles each.
Kernel gradient(int64_t m = 1024, int64_t n = 3072, int64_t k = 4096) {
  return samples::contractKernel({{'m', m}, {'n', n}, {'k', k}}, "mk", "nk", "mn");
}

std::string rejectionOf(const Kernel &kernel, Sm90GemmKnobs knobs) {
  return sm90Rejection(kernel, samples::stridedConfiguration(kernel, knobs), knobs,
                       device().sharedMemoryPerBlock);
}
Sm90GemmKnobs with(int Sm90GemmKnobs::*member, int value) {
  Sm90GemmKnobs knobs = streamed;
  knobs.*member = value;
  return knobs;
}

}  // namespace

TEST_CASE("stream-K is accepted for few tiles in no whole waves, else rejected with the limit") {
  CHECK(rejectionOf(gradient(), streamed) == "");
  CHECK(rejectionOf(gradient(), with(&Sm90GemmKnobs::blocks, 96)) ==
        "stream-K runs of k-tiles of 192 tiles for 96 blocks; at most 4 for each are taken, in no "
        "whole waves");
  CHECK(rejectionOf(gradient(), with(&Sm90GemmKnobs::blocks, 40)) ==
        "stream-K runs of k-tiles of 192 tiles for 40 blocks; at most 4 for each are taken, in no "
        "whole waves");
  CHECK(rejectionOf(gradient(512, 512, 512), streamed) ==
        "stream-K runs of 128 k-tiles for 132 blocks; each takes 2 at least");
  CHECK(rejectionOf(gradient(1024, 3072, 1003), streamed) ==
        "stream-K runs of k-tiles take operands whose rows start at multiples of 16 bytes");
  CHECK(rejectionOf(gradient(), with(&Sm90GemmKnobs::splitK, 2)) ==
        "stream-K runs of k-tiles in ping-pong tiles, or with k over several blocks; cooperative "
        "tiles "
        "with k in one block are taken");
  CHECK(rejectionOf(gradient(), with(&Sm90GemmKnobs::streamK, 2)) ==
        "streamK of 2; 0 and 1 are taken");
  CHECK(rejectionOf(samples::gemmBias({.b = 8, .j = 128, .i = 4096, .u = 3072}, DType::f16),
                    streamed) ==
        "stream-K runs of k-tiles have no epilogue: take others where something follows the GEMM");
  Sm90GemmKnobs wide = streamed;
  wide.tileN = 256, wide.stages = 3, wide.blocks = 300;
  CHECK_THAT(
      rejectionOf(gradient(8192, 4096), wide),
      Catch::Contains(
          "bytes of accumulators of tiles that blocks share; a kernel keeps 67108864 for itself"));
  wide.tileN = 192, wide.tileM = 256, wide.blocks = 132;
  CHECK_FALSE(rejectionOf(gradient(), wide).empty());  // 192 accumulators a thread
}

TEST_CASE(
    "stream-K launches one CTA for each block asked for, with device memory for its partials") {
  const Kernel kernel = gradient();
  const GemmProblem gemm = *wgmmaProblem(kernel, samples::stridedConfiguration(kernel, streamed));
  CHECK(sm90Blocks(gemm, streamed) == 132);
  CHECK(streamKBytes(gemm, streamed) == 132 * 2 * 128 * 128 * 4 + 192 * 2 * 4);
  CHECK(streamKBytes(gemm, with(&Sm90GemmKnobs::streamK, 0)) == 0);
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, samples::stridedConfiguration(kernel, streamed), "sm_90a");
  CHECK(emitted.launch.grid[0] == 132);
  Sm90GemmKnobs fewer = streamed;
  fewer.blocks = 128;
  const codegen::EmittedKernel other =
      codegen::emit(kernel, samples::stridedConfiguration(kernel, fewer), "sm_90a");
  CHECK(other.launch.grid[0] == 128);
  CHECK(other.text != emitted.text);  // what blocks leave has a place for each
  // Two waves of 132 blocks are 2 x 64 k-tiles for some; in stream-K runs 70 for each of 144 tiles
  // and 94 of 192, whose k-tiles take a fifth longer.
  const auto isFaster = [](const Kernel &one) {
    const auto seconds = [&](const Sm90GemmKnobs &knobs) {
      return analyticCostModel(device())
          ->cost(one, samples::stridedConfiguration(one, knobs))
          .seconds;
    };
    return seconds(streamed) < seconds(with(&Sm90GemmKnobs::streamK, 0));
  };
  CHECK(isFaster(gradient(1536, 1536, 4096)));
  CHECK_FALSE(isFaster(gradient(1024, 3072, 4096)));
}

TEST_CASE("measurements and plans carry the knob streamK only if it is set") {
  const Kernel kernel = gradient();
  const Configuration configuration = samples::stridedConfiguration(kernel, streamed),
                      other =
                          samples::stridedConfiguration(kernel, with(&Sm90GemmKnobs::streamK, 0));
  const std::string line = configurationLine(kernel, configuration);
  CHECK_THAT(line, Catch::EndsWith(" streamK=1"));
  CHECK(parseKnobs("gemm-sm90", splitLine(line).knobs, kernel) == configuration.knobs);
  CHECK(configurationLine(kernel, other).find("streamK") == std::string::npos);
  CHECK(canonicalText(kernel, configuration, "sm_90a") != canonicalText(kernel, other, "sm_90a"));
  CHECK(canonicalText(kernel, other, "sm_90a").find("streamK") == std::string::npos);
  CHECK(knobsOf(planKnobsFromJson(toJson(planKnobs(configuration.knobs, kernel)), "a test"), kernel,
                "a test") == configuration.knobs);
  CHECK_FALSE(toJson(planKnobs(other.knobs, kernel)).contains("streamK"));
  CHECK(isLegal(kernel, configuration, device()));
}

TEST_CASE("stream-K is considered only if measured") {
  const Kernel kernel = gradient();
  const auto isStreamed = [](const Knobs &knobs) {
    const auto *tile = knobs.getIf<Sm90GemmKnobs>();
    return tile && tile->streamK != 0;
  };
  for (const ConfigurationSpace &space : nonEmpty(everySpace(kernel, device())))
    CHECK(std::ranges::none_of(space.knobs, isStreamed));
  const LayoutTuple rows{rowMajor(2), rowMajor(2), rowMajor(2)};
  const std::vector<Sm90GemmKnobs> tiles = streamKTiles(kernel, rows, device());
  REQUIRE(tiles.size() >= 2);
  for (const Sm90GemmKnobs &tile : nonEmpty(tiles)) CHECK(rejectionOf(kernel, tile) == "");
  CHECK(streamKTiles(gradient(64, 64, 64), rows, device()).empty());
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  addMeasurement(
      profile, kernel, samples::stridedConfiguration(kernel, tiles[0]),
      {.seconds = 1e-5, .n = 9, .spread = 0.01, .familyVersion = sm90GemmFamily.version});
  const auto model = measuredCostModel(device(), profile, "profile p", false);
  size_t found = 0;
  for (const PricedConfiguration &one : model->measured(kernel))
    found += isStreamed(one.configuration.knobs) && one.cost.seconds == 1e-5 ? 1 : 0;
  CHECK(found == 1);
}

TEST_CASE("sums over packed tokens are offered stream-K, in whole waves and in many, too") {
  for (const samples::TokenExtents &extents :
       {samples::TokenExtents{.t = 4096, .i = 768, .u = 3072, .sequences = 8},
        samples::TokenExtents{.t = 8192, .i = 1536, .u = 1408, .sequences = 16},
        samples::TokenExtents{.t = 2048, .i = 8192, .u = 8192, .sequences = 16}}) {
    const Kernel kernel = samples::sumOverTokens(extents, DType::f16);
    std::vector<Exclusion> excluded;
    int offered = 0, others = 0;
    for (const ConfigurationSpace &space :
         nonEmpty(configurationSpaces(kernel, device(), &excluded))) {
      if (*space.family != sm90GemmFamily) continue;
      for (const Knobs &knobs : nonEmpty(space.knobs)) {
        const auto &own = knobs.get<Sm90GemmKnobs>();
        (own.streamK != 0 ? offered : others) += 1;
        CHECK(sm90GemmFamily.endsSums(kernel, knobs) ==
              (own.schedule != Sm90Schedule::singleConsumer));
      }
    }
    std::string reasons;
    for (const Exclusion &one : excluded)
      reasons += fmt::format("{}: {}\n", one.family, one.reason);
    INFO(reasons);
    CHECK(offered > 0);
    CHECK(others > 0);
    CHECK(reasons.find("the library adds all that fit") != std::string::npos);
  }
}
