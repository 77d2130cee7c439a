// What follows a tensor-core contraction of sm_90a: which epilogues tiles have room for, sums and
// local softmaxes, what is rejected and why.
#include "codegen/Emit.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/gemm_sm90/Sm90Cost.h"
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/EmittedText.h"
#include "tests/unit/samples/SampleRotary.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/Sm90Family.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;
using codegen::Parameter;

TEST_CASE("the more registers an epilogue needs, the fewer accumulators its widest tile has") {
  const ContractionExtents extents{.b = 8, .j = 512, .i = 1024, .u = 3072};
  const auto widest = [&](const Kernel &kernel) {
    int sums = 0;
    for (const Configuration &one : ofFamily(kernel)) {
      const auto &knobs = one.knobs.get<Sm90GemmKnobs>();
      sums = std::max(sums,
                      (knobs.schedule == Sm90Schedule::pingPong ? knobs.tileM : knobs.tileM / 2) *
                          knobs.tileN / 128);
    }
    return sums;
  };
  // The more registers an epilogue takes, the fewer accumulators a thread keeps beside it.
  const int alone =
      widest(contractKernel({{'m', 4096}, {'n', 3072}, {'k', 1024}}, "mk", "nk", "mn"));
  std::multimap<int, int> byRegisters;
  for (const Kernel &kernel :
       {gemmBias(extents, DType::f16), gemmGeluGradient(extents, DType::f16),
        gemmBiasReluDropout(extents, DType::f16), gemmBiasDropoutResidual(extents, DType::f16),
        gemmBiasGelu(extents, DType::f16, true), gemmScaleRowsGate(extents, DType::f16)})
    byRegisters.emplace(epilogueRegisters(kernel, *contractionRegion(kernel)), widest(kernel));
  int before = alone;
  for (const auto &[registers, sums] : nonEmpty(byRegisters)) {
    INFO(registers << " registers, " << sums << " sums");
    CHECK((sums > 0 && sums <= before));
    before = sums;
  }
  CHECK(byRegisters.begin()->second == alone);
  CHECK(before < alone);
  const auto emitted = [&] {
    const Kernel kernel = gemmBiasGelu(extents, DType::f16, true);
    for (Configuration one : ofFamily(kernel)) {
      one.knobs = Sm90GemmKnobs{.schedule = Sm90Schedule::pingPong,
                                .tileM = 128,
                                .tileN = 192,
                                .stages = 4,
                                .epilogueStages = 4};
      codegen::emit(kernel, one, "sm_90a");
    }
  };
  CHECK_THROWS_WITH(emitted(), Catch::Contains("192 accumulators a thread"));
}

TEST_CASE("an operand of the result's shape takes two epilogue stages") {
  const Kernel kernel =
      gemmBiasDropoutResidual({.b = 8, .j = 512, .i = 1024, .u = 3072}, DType::f16);
  Configuration one = ofFamily(kernel).front();
  one.knobs = Sm90GemmKnobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 4,
                            .epilogueStages = 1};
  CHECK_THROWS_WITH(codegen::emit(kernel, one, "sm_90a"), Catch::Contains("1 epilogue stage"));
  one.knobs.get<Sm90GemmKnobs>().epilogueStages = 2;
  CHECK_NOTHROW(codegen::emit(kernel, one, "sm_90a"));
}

TEST_CASE(
    "masks of coordinates follow a GEMM, of lengths in i32, too; other families say why not") {
  const ContractionExtents extents{.b = 8, .j = 512, .i = 1024, .u = 3072};
  const auto reasonOf = [](const Kernel &kernel, std::string_view family) {
    for (const Exclusion &excluded : enumerate(kernel, findDevice("h200")).excluded)
      if (excluded.family == family) return excluded.reason;
    return std::string();
  };
  for (const Kernel &kernel : nonEmpty(maskedContractions(extents, DType::f16))) {
    INFO(kernel.name);
    CHECK(reasonOf(kernel, "gemm-sm90").empty());
    CHECK(reasonOf(kernel, "cublaslt") == "'mask' is none of the library's epilogues");
    CHECK(reasonOf(kernel, "gemm-fma") == "'mask' follows the contraction; no fused epilogues");
  }
  for (const Kernel &kernel : nonEmpty(gatheredContractions(extents, DType::f16))) {
    CHECK(reasonOf(kernel, "gemm-sm90").empty());
    CHECK(reasonOf(kernel, "cublaslt") == "'relative_bias' is none of the library's epilogues");
  }
  const auto offersSingleConsumer = [](const Kernel &kernel) {
    return std::ranges::any_of(configurationSpaces(kernel, findDevice("h200")),
                               [](const ConfigurationSpace &space) {
                                 return std::ranges::any_of(space.knobs, [](const Knobs &knobs) {
                                   const auto *tile = knobs.getIf<Sm90GemmKnobs>();
                                   return tile && tile->schedule == Sm90Schedule::singleConsumer;
                                 });
                               });
  };
  const ContractionExtents few{.b = 1, .j = 16, .i = 1024, .u = 1024};
  for (const Kernel &kernel : nonEmpty(maskedContractions(few, DType::f16)))
    CHECK(offersSingleConsumer(kernel));
  for (const Kernel &kernel : nonEmpty(gatheredContractions(few, DType::f16)))
    CHECK_FALSE(offersSingleConsumer(kernel));
  CHECK(reasonOf(causalLocalSoftmax({}, DType::f16), "gemm-sm90").empty());
  CHECK(reasonOf(windowLocalSoftmax({}, DType::f16), "gemm-sm90").empty());
  // Lengths that are read as a number, not compared with coordinates.
  FusedContraction fused("product_times_lengths", extents, DType::f16);
  const int lengths = fused.input("lengths", "b", DType::i32);
  const Kernel scaled = fused.build({fused.map("mul", "{0} * {1}", {fused.gemm(), lengths}, "y")});
  CHECK(reasonOf(scaled, "gemm-sm90") == "'lengths' is i32; an epilogue takes f32, f16 and bf16");
}

TEST_CASE("epilogues of many tensors are rejected") {
  const auto sumOf = [](int tensors, int outputs) {
    FusedContraction fused("many", {}, DType::f16);
    std::vector<ValueId> inputs, results;
    for (int i = 0; i < tensors; ++i) inputs.push_back(fused.input("t" + std::to_string(i), "bju"));
    int sum = fused.gemm();
    for (int input : inputs)
      results.push_back(
          sum = fused.map("add", "{0} + {1}", {sum, input}, "sum" + std::to_string(input)));
    std::reverse(results.begin(), results.end());
    results.resize(size_t(outputs));
    return fused.build(results);
  };
  CHECK(exclusion(sumOf(3, 3)) == "");
  CHECK(exclusion(sumOf(4, 1)) == "the epilogue reads 4 tensors of several axes; 3 are taken");
  CHECK(exclusion(sumOf(4, 4)).find("4 tensors") != std::string::npos);
  CHECK(exclusion(sumOf(3, 2)) == "");
}

TEST_CASE("epilogue reductions reject split-K and single-consumer tiles") {
  const ContractionExtents extents{.b = 2, .j = 72, .i = 4096, .u = 264};
  for (const Kernel &kernel : nonEmpty(fusedReductions(extents, DType::f16))) {
    INFO(kernel.name);
    const std::vector<Configuration> all = ofFamily(kernel);
    CHECK(!all.empty());
    for (const Configuration &one : nonEmpty(all)) {
      const auto &tile = one.knobs.get<Sm90GemmKnobs>();
      CHECK((tile.splitK == 1 && tile.schedule != Sm90Schedule::singleConsumer));
      requireAllTensors(codegen::emit(kernel, one, "sm_90a"), kernel);
    }
  }
  const Kernel with = gemmColumnReduction(extents, DType::f16);
  const std::vector<Configuration> tiles = ofFamily(with);
  Configuration split = *std::ranges::find_if(tiles, [](const Configuration &one) {
    return one.knobs.get<Sm90GemmKnobs>().multicastB == 1;
  });
  auto &tile = split.knobs.get<Sm90GemmKnobs>();
  tile.splitK = 2, tile.stages = 2;
  CHECK_THROWS_WITH(codegen::emit(with, split, "sm_90a"),
                    Catch::Contains("beside sums of the result; they take whole tiles"));
  split.knobs = Sm90GemmKnobs{.schedule = Sm90Schedule::singleConsumer, .tileM = 64, .tileN = 8};
  CHECK_THROWS_WITH(codegen::emit(with, split, "sm_90a"),
                    Catch::Contains("single-consumer tiles sum nothing"));
  Configuration moved = ofFamily(gemmResidualRowReductions(extents, DType::f16)).front();
  std::swap(moved.outputs[1].order[0], moved.outputs[1].order[1]);
  CHECK_THROWS_WITH(codegen::emit(gemmResidualRowReductions(extents, DType::f16), moved, "sm_90a"),
                    Catch::Contains("a sum, does not lie as its axes do in the result"));
}

TEST_CASE("an epilogue with a local softmax needs sub-vectors that are contiguous in the result") {
  for (const bool startsWithKeys : {false, true}) {
    const Kernel kernel =
        scoresLocalSoftmax({.b = 8, .h = 16, .j = 512, .k = 520}, DType::f16, startsWithKeys);
    const std::vector<Configuration> all = ofFamily(kernel);
    CHECK(!all.empty());
    for (const Configuration &one : nonEmpty(all)) {
      const auto &tile = one.knobs.get<Sm90GemmKnobs>();
      CHECK((tile.splitK == 1 && tile.schedule != Sm90Schedule::singleConsumer));
      CHECK(wgmmaProblem(kernel, one)->isSwapped == startsWithKeys);
      requireAllTensors(codegen::emit(kernel, one, "sm_90a"),
                        kernel);  // exponentials, maxima and sums
    }
    const auto rejection = [&](const auto &change) {
      Configuration one = *std::ranges::find_if(all, [](const Configuration &other) {
        return other.knobs.get<Sm90GemmKnobs>().multicastB == 1;
      });
      change(one);
      return sm90Rejection(kernel, one, one.knobs.get<Sm90GemmKnobs>(),
                           findDevice("h200").sharedMemoryPerBlock);
    };
    CHECK(rejection([](Configuration &) {}).empty());
    CHECK(rejection([](Configuration &one) {
            one.knobs.get<Sm90GemmKnobs>() = {.schedule = Sm90Schedule::pingPong,
                                              .tileM = 64,
                                              .tileN = 64,
                                              .stages = 4,
                                              .splitK = 2};
          }) == "k over 2 blocks beside a local softmax of the result; it takes whole tiles");
    CHECK(rejection([](Configuration &one) {
            one.knobs = Sm90GemmKnobs{
                .schedule = Sm90Schedule::singleConsumer, .tileM = 64, .tileN = 8, .stages = 8};
          }) == "single-consumer tiles end with no local softmax: take others");
    CHECK(rejection([](Configuration &one) {
            std::swap(one.outputs[0].order[2], one.outputs[0].order[3]);
          }) == "'local_softmax' runs along an axis in which 'exponentials' is not contiguous");
  }
  CHECK(exclusion(plainLocalSoftmax({.length = 8}, DType::f16)) ==
        "'local_softmax' has sub-vectors of 8 elements; 16, 32 and 64 are taken behind a GEMM");
}

TEST_CASE("statistics of sub-vectors that are scattered over memory have a price") {
  const Kernel kernel = scoresLocalSoftmax({.b = 1, .h = 16, .j = 1024, .k = 1024}, DType::f16);
  const ContractionRegion region = contractionRegion(kernel).value();
  const Device &device = findDevice("h200");
  double adjacent = std::numeric_limits<double>::infinity(), scattered = adjacent;
  for (const Configuration &one : nonEmpty(ofFamily(kernel))) {
    const auto strides = subVectorStrides(kernel, one, region, region.softmax->maxima);
    double &least = strides.value().row > 1 ? scattered : adjacent;
    least = std::min(least, sm90Cost(kernel, one, one.knobs.get<Sm90GemmKnobs>(), device).seconds);
  }
  // 2 statistics of 16 x 1024 x 16 sub-vectors, a sector each.
  REQUIRE(std::isfinite(adjacent));
  REQUIRE(std::isfinite(scattered));
  CHECK(scattered > adjacent + 10e-6);
}

TEST_CASE("an epilogue reduction is of rows or of columns as the GEMM is swapped or not") {
  const Kernel kernel = gemmBiasBothReductions({.b = 2, .j = 256, .i = 512, .u = 1024}, DType::f16);
  const ContractionRegion region = *contractionRegion(kernel);
  bool isSwapped = false, isStraight = false;
  for (const Configuration &one : nonEmpty(ofFamily(kernel))) {
    const GemmProblem gemm = *wgmmaProblem(kernel, one);
    (gemm.isSwapped ? isSwapped : isStraight) = true;
    CHECK(isOfRows(region.reductions[0], gemm) == gemm.isSwapped);  // to u, of group n
    CHECK(isOfRows(region.reductions[1], gemm) != gemm.isSwapped);
  }
  CHECK((isSwapped && isStraight));
}

TEST_CASE("epilogue reductions with too many partial sums are rejected, and small ones cost time") {
  const Kernel large = gemmColumnReduction({.b = 256, .j = 1024, .i = 64, .u = 4096}, DType::f16);
  CHECK_THAT(exclusion(large),
             Catch::Contains("bytes of partial sums; a kernel keeps 4194304 for itself"));
  const ContractionExtents extents{.b = 8, .j = 512, .i = 1024, .u = 3072};
  const Kernel with = gemmGeluGradientColumnReduction(extents, DType::f16),
               without = gemmGeluGradient(extents, DType::f16);
  const auto best = [](const Kernel &kernel) {
    double least = 1e9;
    for (const Configuration &one : ofFamily(kernel))
      least = std::min(least, microseconds(kernel, one));
    return least;
  };
  CHECK(best(with) > best(without) + 1.5);
  CHECK(best(with) < best(without) * 1.2);
}

// That the kernel template asks for boxes of just so many rows is what tests/emulate finds: it
// copies the boxes of these maps.
TEST_CASE("TMA loads an epilogue subtile in several boxes, and stores the result in one") {
  const Kernel kernel =
      gemmBiasDropoutResidual({.b = 8, .j = 512, .i = 1024, .u = 1024}, DType::f16);
  Configuration configuration{
      .inputs = {},
      .outputs = {rowMajor(3)},
      .knobs = Sm90GemmKnobs{.schedule = Sm90Schedule::pingPong, .epilogueStages = 4}};
  for (ValueId input : kernel.inputs)
    configuration.inputs.push_back(rowMajor(kernel.values[size_t(input)].axes.size()));
  const codegen::EmittedKernel emitted = codegen::emit(kernel, configuration, "sm_90a");
  const auto boxOf = [&](Parameter::Kind kind, int index) {
    const auto found = std::ranges::find_if(emitted.parameters, [&](const Parameter &one) {
      return one.kind == kind && one.index == index;
    });
    REQUIRE((found != emitted.parameters.end() && found->map));
    return std::vector<int>(found->map->box.begin(), found->map->box.end());
  };
  const std::vector<int> read = boxOf(Parameter::Kind::inputMap, int(kernel.inputs.size()) - 1),
                         written = boxOf(Parameter::Kind::outputMap, 0);
  CHECK(read[0] == written[0]);
  CHECK((read[1] < written[1] && written[1] % read[1] == 0));
}

TEST_CASE("tiles hold whole heads of a rotary embedding, contiguous along its pairs") {
  const auto widths = [](const Kernel &kernel) {
    std::set<int> found;
    for (const Configuration &one : nonEmpty(ofFamily(kernel))) {
      const auto &knobs = one.knobs.get<Sm90GemmKnobs>();
      CHECK(knobs.schedule != Sm90Schedule::singleConsumer);
      CHECK(one.outputs[0].order.back() == 3);
      found.insert(knobs.tileN);
      if (kernel.axes[4].extent > 64) CHECK(knobs.splitK == 1);
    }
    return found;
  };
  const auto projection = [](int64_t p, const RotaryForm &form = {}, int64_t j = 512) {
    return rotatedProjection({.b = 1, .j = j, .g = 24, .p = p, .i = 1024}, DType::f16, form);
  };
  for (const int width : nonEmpty(widths(projection(128)))) CHECK(width % 128 == 0);
  for (const int width : nonEmpty(widths(projection(96)))) CHECK(width % 96 == 0);
  CHECK(widths(projection(64)).contains(192));
  CHECK_THAT(exclusion(projection(80)), Catch::Contains("columns cut heads of 80"));
  for (const int width : nonEmpty(widths(projection(64, {.end = 2})))) CHECK(128 % width == 0);
  CHECK_THAT(exclusion(projection(32, {.begin = 1, .end = 6})),
             Catch::Contains("columns hold heads that are turned and others"));
  CHECK(!widths(projection(128, {.turned = 16})).empty());
  CHECK_THAT(exclusion(projection(128, {.turned = 8})), Catch::Contains("a lane holds partners"));
  CHECK(!widths(projection(128, {.isHalved = false, .turned = 8})).empty());
  const Kernel one = projection(128);
  Configuration configuration = ofFamily(one).front();
  configuration.knobs =
      Sm90GemmKnobs{.schedule = Sm90Schedule::pingPong, .tileM = 64, .tileN = 192};
  const auto reason = [&](const Configuration &of) {
    return sm90Rejection(one, of, of.knobs.get<Sm90GemmKnobs>(), 227 * 1024);
  };
  CHECK_THAT(reason(configuration), Catch::StartsWith("tiles of 192 columns cut heads of 128"));
  configuration.knobs = Sm90GemmKnobs{
      .schedule = Sm90Schedule::pingPong, .tileM = 64, .tileN = 128, .stages = 4, .splitK = 2};
  CHECK_THAT(reason(configuration), Catch::StartsWith("k over 2 blocks"));
}

TEST_CASE("a rotary embedding behind a GEMM has a price, by how many heads it turns") {
  const auto seconds = [](const RotaryForm &form) {
    const Kernel kernel =
        rotatedProjection({.b = 1, .j = 2048, .g = 48, .p = 128, .i = 4096}, DType::f16, form);
    return sm90ElementSeconds(kernel, contractionRegion(kernel).value());
  };
  const double all = seconds({}), some = seconds({.end = 24}), few = seconds({.end = 1});
  CHECK(all > some);
  CHECK(some > few);
  CHECK(all - some == Approx(some - few).epsilon(0.1));
  CHECK(seconds({.turned = 64}) == Approx(some));
}
