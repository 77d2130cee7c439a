// Tiles whose slices blocks share in equal runs: what is refused and why, that plans and lines of a
// profile carry the knob, and that only rows bring it into selection.
#include "codegen/Emit.h"
#include "kernel/ConfigurationText.h"
#include "kernel/ContractionRegion.h"
#include "kernel/HopperProduct.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/SampleContractions.h"
#include "tests/unit/SampleStrides.h"
#include "tools/driver/PlanConfiguration.h"

#include <catch2/catch.hpp>

using namespace weft;
using weft::test::nonEmpty;

namespace {

const Device &device() { return findDevice("h200"); }
constexpr HopperContractionKnobs streamed{.schedule = HopperSchedule::cooperative,
                                          .tileM = 128,
                                          .tileN = 128,
                                          .stages = 6,
                                          .staging = 2,
                                          .streams = 1};

/// 192 tiles of 128 x 128 and 64 slices of k each.
Kernel gradient(int64_t m = 1024, int64_t n = 3072, int64_t k = 4096) {
  return samples::contractKernel({{'m', m}, {'n', n}, {'k', k}}, "mk", "nk", "mn");
}

std::string refusalOf(const Kernel &kernel, HopperContractionKnobs knobs) {
  return hopperRefusal(kernel, samples::stridedConfiguration(kernel, knobs), knobs,
                       device().sharedMemoryPerBlock);
}
HopperContractionKnobs with(int HopperContractionKnobs::*member, int value) {
  HopperContractionKnobs knobs = streamed;
  knobs.*member = value;
  return knobs;
}

}  // namespace

TEST_CASE(
    "equal runs of slices are taken where tiles are few and no whole waves, and else refused with "
    "the limit") {
  CHECK(refusalOf(gradient(), streamed) == "");
  CHECK(refusalOf(gradient(), with(&HopperContractionKnobs::blocks, 96)) ==
        "equal runs of slices of 192 tiles for 96 blocks; at most 4 for each are taken, in no "
        "whole waves");
  CHECK(refusalOf(gradient(), with(&HopperContractionKnobs::blocks, 40)) ==
        "equal runs of slices of 192 tiles for 40 blocks; at most 4 for each are taken, in no "
        "whole waves");
  CHECK(refusalOf(gradient(512, 512, 512), streamed) ==
        "equal runs of 128 slices for 132 blocks; each takes 2 at least");
  CHECK(refusalOf(gradient(1024, 3072, 1003), streamed) ==
        "equal runs of slices take operands whose rows start at multiples of 16 bytes");
  CHECK(refusalOf(gradient(), with(&HopperContractionKnobs::splits, 2)) ==
        "equal runs of slices in ping-pong tiles, or with k over several blocks; cooperative tiles "
        "with k in one block are taken");
  CHECK(refusalOf(gradient(), with(&HopperContractionKnobs::streams, 2)) ==
        "streams of 2; 0 and 1 are taken");
  CHECK(refusalOf(samples::productBias({.b = 8, .j = 128, .i = 4096, .u = 3072}, DType::f16),
                  streamed) ==
        "equal runs of slices have no epilogue: take others where something follows the product");
  HopperContractionKnobs wide = streamed;
  wide.tileN = 256, wide.stages = 3, wide.blocks = 300;
  CHECK_THAT(refusalOf(gradient(8192, 4096), wide),
             Catch::Contains(
                 "bytes of sums of tiles that blocks share; a kernel keeps 67108864 for itself"));
  wide.tileN = 192, wide.tileM = 256, wide.blocks = 132;
  CHECK_FALSE(refusalOf(gradient(), wide).empty());  // 192 sums a thread
}

TEST_CASE("runs of slices: the grid, and device memory for what blocks leave") {
  const Kernel kernel = gradient();
  const HopperProduct product =
      *hopperProduct(kernel, samples::stridedConfiguration(kernel, streamed)).product;
  CHECK(hopperBlocks(product, streamed) == 132);
  CHECK(hopperStreamBytes(product, streamed) == 132 * 2 * 128 * 128 * 4 + 192 * 2 * 4);
  CHECK(hopperStreamBytes(product, with(&HopperContractionKnobs::streams, 0)) == 0);
  const codegen::EmittedKernel emitted =
      codegen::emit(kernel, samples::stridedConfiguration(kernel, streamed), "sm_90a");
  CHECK(emitted.launch.grid[0] == 132);
  HopperContractionKnobs fewer = streamed;
  fewer.blocks = 128;
  const codegen::EmittedKernel other =
      codegen::emit(kernel, samples::stridedConfiguration(kernel, fewer), "sm_90a");
  CHECK(other.launch.grid[0] == 128);
  CHECK(other.text != emitted.text);  // what blocks leave has a place for each
  // 192 tiles in two waves of 132 blocks are 2 x 64 slices for some; in equal runs 94 for each.
  CHECK(analyticCostModel(device())
            ->cost(kernel, samples::stridedConfiguration(kernel, streamed))
            .seconds < analyticCostModel(device())
                           ->cost(kernel, samples::stridedConfiguration(
                                              kernel, with(&HopperContractionKnobs::streams, 0)))
                           .seconds);
}

TEST_CASE("lines of a profile and plans carry the knob, and others are as before") {
  const Kernel kernel = gradient();
  const Configuration configuration = samples::stridedConfiguration(kernel, streamed),
                      other = samples::stridedConfiguration(
                          kernel, with(&HopperContractionKnobs::streams, 0));
  const std::string line = configurationLine(kernel, configuration);
  CHECK_THAT(line, Catch::EndsWith(" streams=1"));
  CHECK(parseKnobs("hopper-contraction", splitLine(line).knobs, kernel) == configuration.knobs);
  CHECK(configurationLine(kernel, other).find("streams") == std::string::npos);
  CHECK(canonicalText(kernel, configuration, "sm_90a") != canonicalText(kernel, other, "sm_90a"));
  CHECK(canonicalText(kernel, other, "sm_90a").find("streams") == std::string::npos);
  CHECK(driver::knobsFromJson(driver::toJson(configuration.knobs, kernel), kernel, "a test") ==
        configuration.knobs);
  CHECK_FALSE(driver::toJson(other.knobs, kernel).contains("streams"));
  CHECK(driver::legality(kernel, configuration, device()).isLegal);
}

TEST_CASE("no space has runs of slices; rows bring them") {
  const Kernel kernel = gradient();
  const auto isStreamed = [](const Knobs &knobs) {
    const auto *tile = std::get_if<HopperContractionKnobs>(&knobs);
    return tile && tile->streams != 0;
  };
  for (const ConfigurationSpace &space : nonEmpty(everySpace(kernel, device())))
    CHECK(std::ranges::none_of(space.knobs, isStreamed));
  const LayoutTuple rows{rowMajor(2), rowMajor(2), rowMajor(2)};
  const std::vector<HopperContractionKnobs> tiles = streamedTiles(kernel, rows, device());
  REQUIRE(tiles.size() >= 2);
  for (const HopperContractionKnobs &tile : nonEmpty(tiles)) CHECK(refusalOf(kernel, tile) == "");
  CHECK(streamedTiles(gradient(64, 64, 64), rows, device()).empty());
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  addRow(profile, kernel, samples::stridedConfiguration(kernel, tiles[0]),
         {.seconds = 1e-5,
          .n = 9,
          .spread = 0.01,
          .familyVersion = familyVersion(familyOf(tiles[0]))});
  const auto model = measuredCostModel(device(), profile, "profile p", false);
  size_t found = 0;
  for (const PricedConfiguration &one : model->measured(kernel))
    found += isStreamed(one.configuration.knobs) && one.cost.seconds == 1e-5 ? 1 : 0;
  CHECK(found == 1);
}
