// Tensor-core contractions of sm_90a: which contractions, layouts and targets they take, the
// GEMM and maps derived from them, and their price against cuBLASLt's and against figures
// measured on an H200.
#include "codegen/Emit.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Cost.h"
#include "codegen/families/gemm_sm90/Sm90CostConstants.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/ConfigurationText.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/AnalyticConstants.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/EmittedText.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/Sm90Family.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;
using codegen::Parameter;

namespace {

Kernel gemm(int64_t m, int64_t n, int64_t k) {
  return contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in");
}

Configuration rowMajorGemm(const Sm90GemmKnobs &knobs = {}) {
  return {.inputs = {rowMajor(2), rowMajor(2)}, .outputs = {rowMajor(2)}, .knobs = knobs};
}

/// The family's best by the model; A and B along k.
double bestMicroseconds(int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
  const Kernel kernel =
      contractKernel({{'b', batch}, {'m', m}, {'n', n}, {'k', k}}, "bmk", "bnk", "bmn");
  double best = 1e9;
  for (const Configuration &one : ofFamily(kernel))
    if (one.inputs[0] == rowMajor(3) && one.inputs[1] == rowMajor(3) &&
        one.outputs[0] == rowMajor(3))
      best = std::min(best, microseconds(kernel, one));
  return best;
}

}  // namespace

TEST_CASE("tensor-core contractions take every layout that a library GEMM takes") {
  for (const Kernel &kernel :
       {contractKernel({{'p', 4}, {'h', 2}, {'b', 3}, {'k', 6}, {'j', 5}}, "phbk", "phbj", "hbjk"),
        contractKernel({{'p', 4}, {'h', 2}, {'i', 16}, {'b', 3}, {'j', 5}}, "phi", "bji",
                       "phbj")}) {
    std::set<std::pair<std::vector<Layout>, std::vector<Layout>>> library, own;
    for (const Configuration &one : enumerate(kernel, h200()).legal) {
      if (one.knobs.is<LibraryKnobs>()) library.emplace(one.inputs, one.outputs);
      if (one.knobs.is<Sm90GemmKnobs>()) own.emplace(one.inputs, one.outputs);
    }
    CHECK(!own.empty());
    CHECK(own == library);
  }
}

TEST_CASE("why other contractions and targets have none") {
  const Kernel plain = gemm(64, 64, 64);
  CHECK(exclusion(plain) == "");
  CHECK(exclusion(plain, findDevice("a100")) == "sm_80 has no WGMMA; sm_90a has");
  CHECK(ofFamily(plain, findDevice("a100")).empty());
  Kernel f32 = plain;
  for (Value &value : f32.values) value.dtype = DType::f32;
  CHECK(exclusion(f32) ==
        "element type f32; f16, bf16, f32 at precision tf32, and GEMMs of f8e4m3 and f8e5m2 are "
        "taken");
  Kernel mixed = plain;
  mixed.values[2].dtype = DType::f32;
  CHECK(exclusion(mixed).find("one element type") != std::string::npos);
  CHECK_THROWS_WITH(codegen::emit(plain, rowMajorGemm(), "sm_80"),
                    Catch::Contains("target 'sm_80' has no WGMMA"));
}

TEST_CASE("a result contiguous along m is computed transposed") {
  const Kernel kernel = gemm(48, 32, 16);
  Configuration configuration = rowMajorGemm();
  const GemmProblem straight = *wgmmaProblem(kernel, configuration);
  CHECK((!straight.isSwapped && straight.m == 48 && straight.n == 32 && straight.strideCm == 32));
  CHECK((straight.a.isAlongK() && straight.a.outer == 16 && !straight.b.isAlongK() &&
         straight.b.k == 32 && straight.b.outer == 1));
  configuration.outputs[0].order = {1, 0};
  const GemmProblem swapped = *wgmmaProblem(kernel, configuration);
  CHECK((swapped.isSwapped && swapped.m == 32 && swapped.n == 48 && swapped.strideCm == 48));
  CHECK((swapped.a.input == 1 && swapped.b.input == 0 && !swapped.a.isAlongK() &&
         swapped.b.isAlongK()));
}

TEST_CASE("TMA moves what starts at multiples of 16 bytes, threads the rest") {
  const auto tmaOperands = [](int64_t m, int64_t n, int64_t k,
                              const Configuration &configuration = rowMajorGemm()) {
    const GemmProblem one = *wgmmaProblem(gemm(m, n, k), configuration);
    return std::vector<bool>{one.a.usesTma, one.b.usesTma, one.usesTma, one.storesOnlyByTma()};
  };
  CHECK(tmaOperands(33, 40, 24) == std::vector<bool>{true, true, true, true});
  CHECK(tmaOperands(33, 40, 7) == std::vector<bool>{false, true, true, true});
  CHECK(tmaOperands(33, 65, 24) == std::vector<bool>{true, false, false, false});
  Configuration padded = rowMajorGemm();
  padded.inputs[1].strides = padded.outputs[0].strides = {72, 1};
  CHECK(tmaOperands(33, 65, 24, padded) == std::vector<bool>{true, true, true, false});
  Configuration shifted = rowMajorGemm();
  shifted.inputs[0].alignment = 4;
  CHECK(tmaOperands(33, 40, 24, shifted) == std::vector<bool>{false, true, true, true});
}

TEST_CASE("extents of 1 have a pitch") {
  for (const int64_t m : {1, 9})
    for (const int64_t n : {1, 9})
      for (const int64_t k : {1, 9})
        for (const Configuration &one : nonEmpty(ofFamily(gemm(m, n, k)))) {
          const GemmProblem shape = *wgmmaProblem(gemm(m, n, k), one);
          CHECK((shape.a.outer == 1) != (shape.a.k == 1));
          CHECK((shape.b.outer == 1) != (shape.b.k == 1));
          CHECK(shape.a.pitch() > 1);
          CHECK(shape.strideCm >= shape.n);
        }
}

TEST_CASE("knobs that no kernel has") {
  const auto rejection = [](Sm90GemmKnobs knobs) {
    return sm90KnobsRejection(knobs, h200().sharedMemoryPerBlock);
  };
  CHECK(rejection({}) == "");
  CHECK(rejection({.tileM = 64}).find("64 rows") != std::string::npos);
  CHECK(rejection({.tileN = 96}).find("96 columns") != std::string::npos);
  CHECK(rejection({.tileM = 256, .tileN = 256, .stages = 2}).find("registers") !=
        std::string::npos);
  CHECK(rejection({.stages = 8}).find("shared memory") != std::string::npos);
  CHECK(rejection({.stages = 1}) == "1 stages; 2 or more are taken");
  CHECK(rejection({.epilogueStages = 0}) == "0 epilogue stages; 1 or more are taken");
  CHECK(rejection({.groupM = 0}) == "group-M 0; 1 or more is taken");
  CHECK(rejection({.blocks = 0}) == "0 blocks; 1 or more are taken");
  CHECK(rejection({.splitK = 2}) == "");
  CHECK(rejection({.splitK = 3}).find("clusters of 1, 2, 4 and 8") != std::string::npos);
  CHECK(rejection({.stages = 5, .splitK = 8}).find("shared memory") != std::string::npos);
  CHECK(rejection({.multicastB = 2}) == "");
  CHECK(rejection({.multicastB = 4}).find("1 and 2 are taken") != std::string::npos);
  CHECK(rejection({.splitK = 2, .multicastB = 2}).find("whole tiles") != std::string::npos);
  CHECK(rejection({.multicastB = 2, .streamK = 1}).find("whole tiles") != std::string::npos);
  for (const Sm90GemmKnobs &knobs : {Sm90GemmKnobs{.tileN = 64, .multicastB = 2},
                                     {.tileN = 192, .multicastB = 2},
                                     {.groupM = 3, .multicastB = 2},
                                     {.blocks = 131, .multicastB = 2}})
    CHECK(rejection(knobs).find("64 columns or a multiple") != std::string::npos);
  CHECK_THROWS_WITH(codegen::emit(gemm(64, 64, 64), rowMajorGemm({.tileN = 96}), "sm_90a"),
                    Catch::Contains("96 columns"));
}

TEST_CASE("every configuration is emitted, with a map for each tensor that TMA moves") {
  for (const Kernel &kernel : {gemm(512, 3072, 1024), gemm(33, 65, 7),
                               contractKernel({{'p', 64}, {'h', 2}, {'b', 3}, {'k', 40}, {'j', 72}},
                                              "phbk", "phbj", "hbjk")})
    for (const Configuration &one : nonEmpty(ofFamily(kernel))) {
      const auto &knobs = one.knobs.get<Sm90GemmKnobs>();
      const codegen::EmittedKernel emitted = codegen::emit(kernel, one, "sm_90a");
      const GemmProblem shape = *wgmmaProblem(kernel, one);
      const auto count = [&](Parameter::Kind kind) {
        return std::ranges::count(emitted.parameters, kind, &Parameter::kind);
      };
      CHECK(count(Parameter::Kind::inputMap) == shape.a.usesTma + shape.b.usesTma);
      CHECK(count(Parameter::Kind::input) == !shape.a.usesTma + !shape.b.usesTma);
      const bool isSingleConsumer =
          knobs.schedule == Sm90Schedule::singleConsumer;  // stored from registers
      CHECK(count(Parameter::Kind::outputMap) == (!isSingleConsumer && shape.usesTma));
      CHECK(count(Parameter::Kind::output) == (isSingleConsumer || !shape.storesOnlyByTma()));
      CHECK(emitted.launch.block[0] == (isSingleConsumer ? 160 : 384));
      CHECK(emitted.launch.startsEarly == isSingleConsumer);
      CHECK(emitted.launch.grid[0] == sm90Blocks(shape, knobs));
      CHECK(emitted.launch.cluster == knobs.splitK * knobs.multicastB);
      CHECK(emitted.launch.sharedBytes == sm90SharedBytes(knobs));
      for (const Parameter &parameter : nonEmpty(emitted.parameters)) {
        CHECK(parameter.map.has_value() == isMap(parameter.kind));
        if (!parameter.map) continue;
        CHECK(parameter.map->extents.size() == (shape.batch > 1 ? 3 : 2));
        for (const int64_t stride : nonEmpty(parameter.map->strides)) CHECK(stride * 2 % 16 == 0);
        for (const int side : nonEmpty(parameter.map->box)) CHECK(side <= 256);
      }
    }
}

TEST_CASE("a configuration is one line of a GEMM's subject, and is read back") {
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong, .stages = 6, .groupM = 4};
  const Kernel kernel = gemm(512, 3072, 1024);
  const std::string line = configurationLine(kernel, rowMajorGemm(knobs));
  CHECK(line == "gemm-sm90 1024,1:0_3072,1:0>3072,1:0 schedule=ping-pong stages=6 groupM=4");
  CHECK(subjectOf(kernel, rowMajorGemm(knobs)).text == "gemm f16 1 x 512 x 3072 x 1024");
  const LineFields parts = splitLine(line);
  CHECK((parseKnobs(parts.family, parts.knobs, kernel)).get<Sm90GemmKnobs>() == knobs);
  CHECK_THROWS_AS(parseKnobs(parts.family, "schedule=alone", kernel), Error);
}

TEST_CASE("few tiles are tried: those of the shape") {
  for (const auto &[m, n] :
       {std::pair<int64_t, int64_t>{4096, 4096}, {300, 1000}, {4096, 64}, {8, 4096}, {1, 1}}) {
    std::set<Knobs> knobs;
    for (const Configuration &one : ofFamily(gemm(m, n, 1024))) knobs.insert(one.knobs);
    INFO(m << " x " << n);
    CHECK(knobs.size() >= 3);
    CHECK(knobs.size() <= 13);
  }
}

TEST_CASE("blocks share k where tiles are few and k is long") {
  const auto most = [](int64_t m, int64_t n, int64_t k) {
    int splitK = 0;
    for (const Configuration &one : nonEmpty(ofFamily(gemm(m, n, k)))) {
      const auto &knobs = one.knobs.get<Sm90GemmKnobs>();
      const GemmProblem shape = *wgmmaProblem(gemm(m, n, k), one);
      CHECK(knobs.splitK <= sm90KTiles(shape));
      if (knobs.splitK > 1)
        CHECK(sm90Blocks(shape, knobs) == sm90Tiles(shape, knobs) * knobs.splitK);
      splitK = std::max(splitK, knobs.splitK);
    }
    return splitK;
  };
  CHECK(most(4096, 4096, 1024) == 1);
  CHECK(most(64, 64, 64) == 1);
  CHECK(most(256, 768, 3072) >= 4);
  CHECK(most(512, 1024, 4096) == 2);  // 32 clusters of 4 do not run at one time
  CHECK(most(8, 4096, 4096) >= 4);
  // Accumulators of the others for every subtile that a block stores: half of 128 x 128 in fp32.
  const Sm90GemmKnobs one{.schedule = Sm90Schedule::pingPong, .stages = 4},
      two{.schedule = Sm90Schedule::pingPong, .stages = 4, .splitK = 2};
  CHECK(sm90SharedBytes(two) - sm90SharedBytes(one) == 128 * 128 * 4 / 2);
  CHECK_THROWS_WITH(codegen::emit(gemm(64, 64, 64), rowMajorGemm(two), "sm_90a"),
                    Catch::Contains("each takes 64 at least"));
}

TEST_CASE("blocks load k-tiles of B for each other where rows straddle lines of L2") {
  const auto tiles = [](int64_t m, int64_t n, int64_t k) {
    std::set<Knobs> found;
    for (const Configuration &one : ofFamily(gemm(m, n, k)))
      if (one.knobs.get<Sm90GemmKnobs>().multicastB > 1) found.insert(one.knobs);
    return found;
  };
  CHECK(tiles(4096, 4096, 1024).empty());
  CHECK(tiles(4096, 4096, 1088).empty());   // 17 lines of 128 bytes
  CHECK(!tiles(4096, 4096, 1008).empty());  // 63 sectors of 32 bytes
  CHECK(!tiles(4096, 4096, 1000).empty());
  CHECK(!tiles(4096, 4088, 1024).empty());
  CHECK(tiles(4096, 4095, 1024).empty());  // by threads
  const Kernel narrow = gemm(100, 4088, 1000);
  for (const Configuration &one : nonEmpty(ofFamily(narrow)))  // never of one tile along m
    if (const auto &knobs = one.knobs.get<Sm90GemmKnobs>(); knobs.multicastB > 1)
      CHECK(wgmmaProblem(narrow, one)->m > knobs.tileM);
  // Of few k-tiles, where the order of tiles is that of stores; beside as many tiles that share
  // nothing as there are without.
  for (const auto &[m, n, k] :
       {std::array<int64_t, 3>{8192, 4096, 120}, {8192, 4096, 72}, {4096, 4088, 1000}}) {
    const Kernel few = contractKernel({{'m', m}, {'n', n}, {'k', k}}, "mk", "nk", "mn");
    std::set<Knobs> alone;
    for (const Configuration &one : nonEmpty(ofFamily(few))) {
      const auto &knobs = one.knobs.get<Sm90GemmKnobs>();
      CHECK(sm90Rejection(few, one, knobs, h200().sharedMemoryPerBlock) == "");
      if (knobs.multicastB == 1) alone.insert(one.knobs);
    }
    CHECK(alone.size() >= 4);
  }
  const Kernel kernel = gemm(640, 1000, 1000);
  const Sm90GemmKnobs tile{.schedule = Sm90Schedule::pingPong, .stages = 6, .multicastB = 2};
  CHECK(sm90Rejection(kernel, rowMajorGemm(tile), tile, h200().sharedMemoryPerBlock) ==
        "5 tiles along m for 2 blocks that share k-tiles of B; they take a multiple");
  const GemmProblem shape = *wgmmaProblem(gemm(1280, 1000, 1000), rowMajorGemm(tile));
  CHECK(sm90Blocks(shape, tile) == 80);
  const Kernel alongK = contractKernel({{'i', 1280}, {'k', 1000}, {'n', 1000}}, "ik", "nk", "in");
  const codegen::EmittedKernel emitted = codegen::emit(alongK, rowMajorGemm(tile), "sm_90a");
  CHECK(emitted.launch.cluster == 2);
  // Each loads half of the 128 rows of a slice of B, and all of A's.
  std::multiset<int> rows;
  for (const Parameter &parameter : emitted.parameters)
    if (parameter.kind == Parameter::Kind::inputMap) rows.insert(parameter.map->box[1]);
  CHECK(rows == std::multiset<int>{64, 128});
  const std::string line = configurationLine(kernel, rowMajorGemm(tile));
  const LineFields parts = splitLine(line);
  CHECK(line.ends_with("schedule=ping-pong stages=6 multicastB=2"));
  CHECK((parseKnobs(parts.family, parts.knobs, kernel)).get<Sm90GemmKnobs>() == tile);
}

TEST_CASE("narrow tiles take no longer with each wave behind the fifth") {
  const Device &device = h200();
  const Sm90GemmKnobs tile{.schedule = Sm90Schedule::pingPong, .tileM = 64, .tileN = 128};
  const auto seconds = [&](int64_t waves) {
    return sm90TensorSeconds(
        *wgmmaProblem(gemm(waves * device.multiprocessors * 64, 128, 8192), rowMajorGemm(tile)),
        tile, analytic::epilogueSeconds, device);
  };
  CHECK(seconds(5) > 1.3 * 5 * seconds(1));
  CHECK(seconds(50) == Approx(10 * seconds(5)).epsilon(0.02));
}

TEST_CASE(
    "rows that straddle lines arrive more slowly, by sectors by half, which blocks that share "
    "k-tiles of B make up for") {
  const Device &device = h200();
  const Sm90GemmKnobs pingPong{.schedule = Sm90Schedule::pingPong, .stages = 6}, wide{.tileN = 256};
  const auto seconds = [&](int64_t n, int64_t k, Sm90GemmKnobs tile, int multicastB) {
    tile.multicastB = multicastB;
    return sm90TensorSeconds(*wgmmaProblem(gemm(4096, n, k), rowMajorGemm(tile)), tile,
                             analytic::epilogueSeconds, device);
  };
  // Measured, us: 50.3; 74.9 and 53.0; 99.9 and 75.8; 64.0 and 54.0 (128 x 256).
  CHECK(seconds(4096, 1024, pingPong, 1) == seconds(4096, 1024, pingPong, 2));
  CHECK(seconds(4088, 1024, pingPong, 1) ==
        Approx(1.5 * seconds(4096, 1024, pingPong, 1)).epsilon(0.02));
  CHECK(seconds(4088, 1024, pingPong, 2) == Approx(seconds(4096, 1024, pingPong, 1)).epsilon(0.02));
  CHECK(seconds(4088, 1000, pingPong, 1) ==
        Approx(2 * seconds(4096, 1024, pingPong, 1)).epsilon(0.02));
  CHECK(seconds(4088, 1000, wide, 2) < 0.85 * seconds(4088, 1000, wide, 1));
}

namespace {

/// The single-consumer tiles of a GEMM, with the layouts as they are written: C[m,n], A[m,k],
/// B[n,k] or B[k,n].
std::set<Knobs> singleConsumerTiles(int64_t m, int64_t n, int64_t k, const char *b = "nk") {
  const Kernel kernel = contractKernel({{'m', m}, {'n', n}, {'k', k}}, "mk", b, "mn");
  std::set<Knobs> tiles;
  for (const Configuration &one : ofFamily(kernel)) {
    const bool isRowMajor =
        std::ranges::all_of(one.inputs,
                            [](const Layout &layout) { return layout == rowMajor(2); }) &&
        one.outputs[0] == rowMajor(2);
    if (isRowMajor && one.knobs.get<Sm90GemmKnobs>().schedule == Sm90Schedule::singleConsumer)
      tiles.insert(one.knobs);
  }
  return tiles;
}
Sm90GemmKnobs singleConsumer(int tileM, int tileN, int stages, int splitK = 1) {
  return {.schedule = Sm90Schedule::singleConsumer,
          .tileM = tileM,
          .tileN = tileN,
          .stages = stages,
          .splitK = splitK};
}

}  // namespace

TEST_CASE(
    "single-consumer tiles are offered where one side is short or tiles are few, and k is along "
    "what has "
    "few columns") {
  // The matrix streams past 8 rows: 32 rows of it a block, or 64 and half of k.
  const std::set<Knobs> decode = singleConsumerTiles(8, 4096, 4096);
  CHECK(decode.contains(singleConsumer(8, 32, 45)));
  CHECK(decode.contains(singleConsumer(8, 64, 24, 2)));
  CHECK(!singleConsumerTiles(8, 4096, 4096, "kn").contains(singleConsumer(8, 32, 45)));
  CHECK(singleConsumerTiles(8, 4096, 4096, "kn").contains(singleConsumer(8, 64, 24, 2)));
  CHECK(singleConsumerTiles(13, 4096, 4096).contains(singleConsumer(16, 32, 37)));
  CHECK(singleConsumerTiles(1, 1024, 4096).contains(singleConsumer(8, 32, 16, 4)));
  CHECK(singleConsumerTiles(8, 12288, 4096)
            .contains(singleConsumer(8, 32, 14)));  // three blocks on a multiprocessor
  // One wave of 117 and of 125 blocks.
  CHECK(singleConsumerTiles(520, 520, 520) ==
        std::set<Knobs>{singleConsumer(40, 64, 9), singleConsumer(64, 40, 9)});
  CHECK(singleConsumerTiles(300, 1000, 520).contains(singleConsumer(64, 40, 9)));
  CHECK(singleConsumerTiles(520, 520, 520, "kn") == std::set<Knobs>{singleConsumer(40, 64, 9)});
  // Large products, and rows that start anywhere, have none.
  CHECK(singleConsumerTiles(4096, 4096, 1024).empty());
  CHECK(singleConsumerTiles(512, 3072, 1024).empty());
  CHECK(singleConsumerTiles(512, 512, 4096).empty());
  CHECK(singleConsumerTiles(520, 520, 519).empty());
}

TEST_CASE(
    "single-consumer tiles take element-wise epilogues, and neither dropout nor sums behind a "
    "GEMM") {
  const ContractionExtents decode{.b = 1, .j = 8, .i = 4096, .u = 4096};
  const auto tilesOf = [](const Kernel &kernel) {
    std::set<Knobs> tiles;
    for (const Configuration &one : ofFamily(kernel))
      if (one.knobs.get<Sm90GemmKnobs>().schedule == Sm90Schedule::singleConsumer)
        tiles.insert(one.knobs);
    return tiles;
  };
  for (const Kernel &kernel : nonEmpty(singleConsumerEpilogues(decode, DType::f16))) {
    INFO(kernel.name);
    CHECK(tilesOf(kernel) ==
          std::set<Knobs>{singleConsumer(8, 32, 45), singleConsumer(8, 64, 24, 2),
                          singleConsumer(32, 8, 45), singleConsumer(64, 8, 24, 2)});
  }
  CHECK(tilesOf(gemmBias({.b = 8, .j = 512, .i = 4096, .u = 4096}, DType::f16)).empty());
  for (const Kernel &kernel :
       {gemmBiasReluDropout(decode, DType::f16), gemmBiasDropoutResidual(decode, DType::f16),
        gemmColumnReduction(decode, DType::f16)})
    CHECK(tilesOf(kernel).empty());
  // Whichever side of the instruction and of C an operand runs along; nothing of C's shape is
  // staged.
  const Kernel kernel = gemmOfAllRoles(decode, DType::f16);
  std::set<std::pair<bool, bool>> orientations;
  const auto isSingleConsumer = [](const Configuration &one) {
    return one.knobs.get<Sm90GemmKnobs>().schedule == Sm90Schedule::singleConsumer;
  };
  for (const Configuration &one : nonEmpty(ofFamily(kernel), isSingleConsumer)) {
    const auto &tile = one.knobs.get<Sm90GemmKnobs>();
    const codegen::EmittedKernel text = codegen::emit(kernel, one, "sm_90a");
    orientations.emplace(singleConsumerSides(tile).isAlongM, wgmmaProblem(kernel, one)->isSwapped);
    requireAllTensors(text, kernel);
    requireEveryOp(kernel, one, "sm_90a");
    CHECK(std::ranges::count(text.parameters, Parameter::Kind::outputMap, &Parameter::kind) == 0);
    CHECK(std::ranges::count(text.parameters, Parameter::Kind::inputMap, &Parameter::kind) == 2);
    CHECK(text.launch.startsEarly);
  }
  CHECK(orientations.size() == 4);
}

TEST_CASE(
    "an epilogue of single-consumer tiles costs what it reads and stores, and less than a second "
    "kernel") {
  const auto best = [](const Kernel &kernel, bool isSingleConsumer) {
    Cost least{.seconds = 1};
    for (const Configuration &one : ofFamily(kernel))
      if ((one.knobs.get<Sm90GemmKnobs>().schedule == Sm90Schedule::singleConsumer) ==
          isSingleConsumer)
        if (const Cost cost = analyticCostModel(h200())->cost(kernel, one);
            cost.seconds < least.seconds)
          least = cost;
    return least;
  };
  for (const auto &[n, k] : {std::pair<int64_t, int64_t>{4096, 1024}, {1024, 4096}, {4096, 4096}})
    for (const int64_t m : {1, 8, 32}) {
      INFO(m << " x " << n << " x " << k);
      const ContractionExtents decode{.b = 1, .j = m, .i = k, .u = n};
      const Cost plain =
          best(contractKernel({{'m', m}, {'n', n}, {'k', k}}, "mk", "nk", "mn"), true);
      const Cost biased = best(gemmBias(decode, DType::f16), true),
                 whole = best(gemmBiasResidual(decode, DType::f16), true);
      CHECK(biased.bytesMoved - plain.bytesMoved == 2 * n);
      CHECK(whole.bytesMoved - biased.bytesMoved == 2 * m * n);
      CHECK((plain.seconds < biased.seconds && biased.seconds < whole.seconds));
      CHECK(whole.seconds < plain.seconds + h200().launchSeconds);
      CHECK(whole.seconds < 1.01 * best(gemmBiasResidual(decode, DType::f16), false).seconds);
    }
}

/// H200, us: 17.3 against 10.5; blocks that follow one another share the k-tiles of 64 columns, or
/// those of 128.
TEST_CASE("what L2 gives prices tiles of 128 x 64 above those of 64 x 128 where k is long") {
  const auto secondsOf = [](int tileM, int tileN, int64_t k) {
    return microseconds(
        gemm(1183, 768, k),
        rowMajorGemm(
            {.schedule = Sm90Schedule::pingPong, .tileM = tileM, .tileN = tileN, .stages = 8}));
  };
  CHECK(secondsOf(128, 64, 3072) > 1.15 * secondsOf(64, 128, 3072));
  CHECK(secondsOf(128, 64, 3072) < 1.7 * secondsOf(64, 128, 3072));
  CHECK(secondsOf(128, 64, 512) == Approx(secondsOf(64, 128, 512)).epsilon(0.02));
}

/// Measured (docs/experiments/gemms.md): 134 us against 81.6, 96.7 against 61.0, 29.5 against 23.7.
TEST_CASE("narrow tiles in many waves cost more than wide ones in fewer") {
  for (const auto &[m, n, k] :
       {std::array<int64_t, 3>{3840, 1344, 5376}, {3456, 1472, 3968}, {3840, 1344, 1344}}) {
    INFO(m << " x " << n << " x " << k);
    std::map<std::pair<int, int>, double> best;  // by tile
    const Kernel kernel = gemm(m, n, k);
    for (const Configuration &one : ofFamily(kernel)) {
      const Sm90GemmKnobs &knobs = one.knobs.get<Sm90GemmKnobs>();
      if (knobs.schedule != Sm90Schedule::pingPong || knobs.splitK > 1 || knobs.streamK != 0)
        continue;
      const double seconds = analyticCostModel(h200())->cost(kernel, one).seconds;
      const auto at = best.emplace(std::pair(knobs.tileM, knobs.tileN), seconds).first;
      at->second = std::min(at->second, seconds);
    }
    REQUIRE(best.contains({128, 192}));
    const double wide = best.at({128, 192});
    for (const auto &tile : {std::pair(64, 128), std::pair(128, 64)})
      if (const auto narrow = best.find(tile); narrow != best.end())
        CHECK(narrow->second > 1.15 * wide);
  }
}

TEST_CASE(
    "what TMA copies has wide tiles although other layouts of odd widths are copied by threads") {
  const auto tilesOf = [](int64_t m, int64_t n, int64_t k) {
    std::set<std::pair<int, int>> tiles;
    const Kernel kernel = gemm(m, n, k);
    for (const Configuration &one : nonEmpty(ofFamily(kernel))) {
      const Sm90GemmKnobs &knobs = one.knobs.get<Sm90GemmKnobs>();
      const GemmProblem problem = *wgmmaProblem(kernel, one);
      CHECK(sm90TileRejection(problem, knobs, 0) == "");
      if (problem.a.usesTma && problem.b.usesTma) tiles.emplace(knobs.tileM, knobs.tileN);
    }
    return tiles;
  };
  CHECK(tilesOf(2331, 1024, 4096).contains({128, 192}));
  CHECK(std::ranges::includes(tilesOf(2331, 1024, 4096), tilesOf(2336, 1024, 4096)));
}

TEST_CASE("single-consumer tiles that no kernel has, and products that take none") {
  const auto rejection = [](const Sm90GemmKnobs &knobs) {
    return sm90KnobsRejection(knobs, h200().sharedMemoryPerBlock);
  };
  CHECK(rejection(singleConsumer(64, 40, 9)) == "");
  CHECK(rejection(singleConsumer(32, 32, 9)) == "");
  CHECK(rejection(singleConsumer(64, 64, 9)).find("one side is 32 or 64") != std::string::npos);
  CHECK(rejection(singleConsumer(64, 20, 9)).find("a multiple of 8") != std::string::npos);
  CHECK(rejection(singleConsumer(32, 40, 9)).find("single-consumer tiles of 32 x 40") !=
        std::string::npos);
  CHECK(rejection(singleConsumer(8, 32, 46)).find("shared memory") != std::string::npos);
  CHECK(rejection(singleConsumer(8, 32, 3)).find("reads 64 rows") != std::string::npos);
  Sm90GemmKnobs staged = singleConsumer(8, 32, 20);
  staged.epilogueStages = 1;
  CHECK(rejection(staged).find("1 epilogue stages") != std::string::npos);
  CHECK(sm90SharedBytes(singleConsumer(8, 64, 24, 2)) -
            sm90SharedBytes(singleConsumer(8, 64, 24)) ==
        8 * 64 * 4);
  CHECK(singleConsumerSides(singleConsumer(8, 32, 20)) ==
        SingleConsumerSides{.rows = 32, .columns = 8, .isAlongM = false});
  CHECK(singleConsumerSides(singleConsumer(32, 32, 20)) ==
        SingleConsumerSides{.rows = 32, .columns = 32, .isAlongM = true});
  const auto emitted = [](int64_t m, int64_t n, int64_t k, const Sm90GemmKnobs &knobs) {
    codegen::emit(gemm(m, n, k), rowMajorGemm(knobs), "sm_90a");
  };
  CHECK_NOTHROW(emitted(8, 4096, 64, singleConsumer(8, 64, 4)));
  CHECK_THROWS_WITH(emitted(8, 4096, 64, singleConsumer(8, 32, 4)),
                    Catch::Contains("a single-consumer tile takes 64"));
  CHECK_THROWS_WITH(emitted(4096, 8, 64, singleConsumer(64, 8, 4)),
                    Catch::Contains("8 columns of an operand that lies along k"));
  CHECK_THROWS_WITH(emitted(8, 4096, 63, singleConsumer(8, 64, 4)),
                    Catch::Contains("multiples of 16 bytes"));
  const Kernel dropped = gemmBiasReluDropout({.b = 1, .j = 8, .i = 4096, .u = 4096}, DType::f16);
  Configuration fused = ofFamily(dropped).front();
  fused.knobs = singleConsumer(8, 64, 4);
  CHECK_THROWS_WITH(codegen::emit(dropped, fused, "sm_90a"),
                    Catch::Contains("single-consumer tiles draw no dropout"));
}

TEST_CASE("8-bit floats: operands along k alone, results of 16 and 32 bits") {
  std::set<std::string> texts;  // of one configuration; elements of other types are read otherwise
  for (const GemmTypes &types : float8Types) {
    const Kernel kernel = float8Gemm({.b = 2, .m = 40, .n = 48, .k = 80}, types);
    const std::vector<Configuration> all = ofFamily(kernel);
    INFO(nameOf(types));
    CHECK(!all.empty());
    std::set<bool> orders;
    for (const Configuration &one : nonEmpty(all)) {
      const GemmProblem gemm = *wgmmaProblem(kernel, one);
      CHECK((gemm.a.isAlongK() && gemm.b.isAlongK() && gemm.a.usesTma && gemm.b.usesTma));
      CHECK(gemm.usesTma == (types.c != DType::f32));
      CHECK((gemm.depth() == 128 && sm90KTiles(gemm) == 1));
      orders.insert(gemm.isSwapped);
      const codegen::EmittedKernel emitted = codegen::emit(kernel, one, "sm_90a");
      requireAllTensors(emitted, kernel);
      if (one.inputs == all.front().inputs && one.outputs == all.front().outputs &&
          one.knobs == all.front().knobs)
        texts.insert(emitted.text);
      const auto isFloat8Map = [](const Parameter &parameter) {
        return parameter.map && isFloat8(parameter.map->dtype);
      };
      for (const Parameter &parameter : nonEmpty(emitted.parameters, isFloat8Map))
        CHECK(parameter.map->box[0] == 128);
    }
    CHECK(orders.size() == 2);
  }
  CHECK(texts.size() == std::size(float8Types));
}

TEST_CASE("why other contractions of 8-bit floats have none") {
  const Kernel kernel = float8Gemm({.m = 64, .n = 48, .k = 80}, float8Types[0]);
  Configuration outer{
      .inputs = {rowMajor(3), rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = Sm90GemmKnobs{}};
  outer.inputs[1].order = {0, 2, 1};
  CHECK(reasonOf(wgmmaProblem(kernel, outer)) ==
        "operand B is not contiguous along k; WGMMA takes f8e4m3 in no other order");
  CHECK_THROWS_WITH(codegen::emit(kernel, outer, "sm_90a"),
                    Catch::Contains("operand B is not contiguous along k"));
  CHECK(exclusion(float8Gemm({}, {DType::f8e4m3, DType::f8e4m3, DType::f8e4m3})) ==
        "'c' is f8e4m3; an epilogue takes f32, f16 and bf16");
  CHECK(exclusion(float8Gemm({}, {DType::f8e4m3, DType::f16, DType::f16})) ==
        "'a' is f8e4m3, the result f16; a GEMM of a warpgroup has one element type here");
  CHECK(exclusion(kernel, findDevice("a100")) == "sm_80 has no WGMMA; sm_90a has");
  const bool isPlainThere =
      std::ranges::any_of(enumerate(kernel, findDevice("a100")).legal,
                          [](const Configuration &one) { return one.knobs.is<FmaGemmKnobs>(); });
  CHECK(isPlainThere);
}

TEST_CASE("8-bit rows that start anywhere, and single columns of k, are copied by threads") {
  const auto tmaOperands = [](int64_t m, int64_t n, int64_t k, const GemmTypes &types) {
    const Configuration one{
        .inputs = {rowMajor(3), rowMajor(3)}, .outputs = {rowMajor(3)}, .knobs = Sm90GemmKnobs{}};
    const GemmProblem gemm = *wgmmaProblem(float8Gemm({.m = m, .n = n, .k = k}, types), one);
    return std::vector<bool>{gemm.a.usesTma, gemm.b.usesTma, gemm.usesTma};
  };
  CHECK(tmaOperands(33, 40, 48, float8Types[0]) == std::vector<bool>{true, true, true});
  CHECK(tmaOperands(33, 40, 40, float8Types[0]) == std::vector<bool>{false, false, true});
  CHECK(tmaOperands(33, 41, 48, float8Types[0]) == std::vector<bool>{true, true, false});
  CHECK(tmaOperands(33, 40, 1, float8Types[0]) == std::vector<bool>{false, false, true});
  CHECK(tmaOperands(1, 40, 40, float8Types[0]) == std::vector<bool>{true, false, true});
}

TEST_CASE("scales of 8-bit floats are scalars of the epilogue, read once") {
  const Kernel kernel = scaledFloat8Gemm({.m = 256, .n = 512, .k = 1024}, float8Types[1]);
  const ContractionRegion region = *contractionRegion(kernel);
  REQUIRE(region.inputs.size() == 3);
  CHECK((region.inputs[0].role == EpilogueRole::scalar &&
         region.inputs[1].role == EpilogueRole::scalar));
  for (const Configuration &one : nonEmpty(ofFamily(kernel))) {
    const std::string text = codegen::emit(kernel, one, "sm_90a").readable;
    for (const char *scale : {"scale_a", "scale_b"})
      CHECK(occurrences(text, scale) == 2);  // the parameter, and where it is read
  }
}

TEST_CASE(
    "products of 8-bit floats take half the time of as many halves, and have their own "
    "measurements") {
  const auto best = [](const Kernel &kernel) {
    double least = 1e9;
    for (const Configuration &one : ofFamily(kernel))
      least = std::min(least, microseconds(kernel, one));
    return least;
  };
  const Kernel singleConsumer = float8Gemm({.m = 4096, .n = 4096, .k = 4096}, float8Types[0]);
  CHECK(best(singleConsumer) == Approx(bestMicroseconds(4096, 4096, 4096) / 2).epsilon(0.1));
  CHECK(subjectOf(singleConsumer, ofFamily(singleConsumer).front()).text ==
        "gemm f8e4m3,f8e4m3->f16 1 x 4096 x 4096 x 4096");
  for (const GemmTypes &types : float8Types) CHECK(parseGemmTypes(nameOf(types)) == types);
  CHECK(parseGemmTypes("f16") == GemmTypes{DType::f16, DType::f16, DType::f16});
  for (const char *text : {"f8e4m3,f16", "f8e4m3->f16", "", "f8,f8->f16"})
    CHECK(!parseGemmTypes(text));
}

TEST_CASE("modelled times against an H200's") {
  // Best of the family's tiles, both operands along k, interleaved with cuBLASLt.
  CHECK(bestMicroseconds(4096, 4096, 4096) == Approx(204).epsilon(0.1));
  CHECK(bestMicroseconds(4096, 3072, 1024) == Approx(40.0).epsilon(0.15));
  CHECK(bestMicroseconds(4096, 1024, 1024) == Approx(15.2).epsilon(0.15));
  CHECK(bestMicroseconds(1024, 3072, 4096) ==
        Approx(38.1).epsilon(0.15));  // mean of four orientations, 36.2 (this one) to 39.3
  CHECK(bestMicroseconds(512, 512, 64, 128) == Approx(24.0).epsilon(0.15));
  CHECK(bestMicroseconds(512, 3072, 1024) == Approx(8.0).epsilon(0.25));
  // Against a library whose algorithm nobody chose it wins where its tiles fit, and not where rows
  // start anywhere, unless they are padded.
  const auto wins = [](int64_t m, int64_t n, int64_t k, bool takesPadded = false) {
    const Kernel kernel = gemm(m, n, k);
    const auto isDense = [](const std::vector<Layout> &layouts) {
      return std::ranges::all_of(layouts, &Layout::isDense);
    };
    double own = 1e9, library = 1e9;
    for (const Configuration &one : enumerate(kernel, h200()).legal) {
      if (!takesPadded && !(isDense(one.inputs) && isDense(one.outputs))) continue;
      if (one.knobs.is<Sm90GemmKnobs>()) own = std::min(own, microseconds(kernel, one));
      if (one.knobs.is<LibraryKnobs>()) library = std::min(library, microseconds(kernel, one));
    }
    return own < library;
  };
  CHECK(wins(4096, 4096, 1024));
  CHECK(wins(4096, 1024, 4096));
  CHECK(!wins(1001, 777, 555));
  CHECK(wins(1001, 777, 555, true));
}
