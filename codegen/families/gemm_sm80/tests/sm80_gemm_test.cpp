// Tensor-core contractions from sm_80 on: which contractions, epilogues, layouts and targets they
// take, what is emitted, and their price between the library's and plain FMA's.
#include "codegen/Emit.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ConfigurationText.h"
#include "kernel/Error.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Families.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/EmittedText.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleTf32.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::samples;

namespace {

Kernel gemm(int64_t m, int64_t n, int64_t k) {
  return contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in");
}

template <typename Family>
std::vector<Configuration> ofFamily(const Kernel &kernel, const Device &device) {
  std::vector<Configuration> result;
  for (const Configuration &configuration : enumerate(kernel, device).legal)
    if (configuration.knobs.is<Family>()) result.push_back(configuration);
  return result;
}

std::vector<Configuration> own(const Kernel &kernel, const char *device = "a100") {
  return ofFamily<Sm80GemmKnobs>(kernel, findDevice(device));
}

std::string exclusion(const Kernel &kernel, const char *device = "a100") {
  for (const Exclusion &excluded : enumerate(kernel, findDevice(device)).excluded)
    if (excluded.family == "gemm-sm80") return excluded.reason;
  return "";
}

Configuration rowMajorGemm(const Sm80GemmKnobs &knobs = {}) {
  return {.inputs = {rowMajor(2), rowMajor(2)}, .outputs = {rowMajor(2)}, .knobs = knobs};
}

}  // namespace

TEST_CASE("contractions of warps take every layout that a library GEMM takes") {
  for (const Kernel &kernel :
       {contractKernel({{'p', 4}, {'h', 2}, {'b', 3}, {'k', 6}, {'j', 5}}, "phbk", "phbj", "hbjk"),
        contractKernel({{'p', 4}, {'h', 2}, {'i', 16}, {'b', 3}, {'j', 5}}, "phi", "bji",
                       "phbj")}) {
    std::set<std::pair<std::vector<Layout>, std::vector<Layout>>> library, warps;
    for (const Configuration &one : ofFamily<LibraryKnobs>(kernel, findDevice("a100")))
      library.emplace(one.inputs, one.outputs);
    for (const Configuration &one : own(kernel)) warps.emplace(one.inputs, one.outputs);
    CHECK(!warps.empty());
    CHECK(warps == library);
  }
}

TEST_CASE(
    "targets: from sm_80 on, and on sm_90a where its own family has no TMA for an "
    "operand") {
  const Kernel plain = gemm(64, 64, 64);
  CHECK(!own(plain, "a100").empty());
  CHECK(!own(plain, "rtx3090").empty());
  for (const char *older : {"v100", "t4"}) {
    CHECK(own(plain, older).empty());
    CHECK(exclusion(plain, older).find("sm_80 and later") != std::string::npos);
  }
  CHECK(own(plain, "h200").empty());
  CHECK(exclusion(plain, "h200") ==
        "gemm-sm90 takes operands whose rows start at multiples of 16 bytes");
  const Kernel odd = gemm(64, 64, 63);
  CHECK(!own(odd, "h200").empty());
  for (const Configuration &one : nonEmpty(own(odd, "h200"))) {
    const GemmProblem shape = *wgmmaProblem(odd, one);
    CHECK_FALSE((shape.a.usesTma && shape.b.usesTma));
  }
}

TEST_CASE("on sm_90a epilogues are offered where products are") {
  CHECK(own(gemmBiasGelu({}, DType::f16, false), "h200").empty());
  CHECK(exclusion(gemmBiasGelu({}, DType::f16, false), "h200") ==
        "gemm-sm90 takes operands whose rows start at multiples of 16 bytes");
  CHECK(
      !own(gemmBiasGelu({.b = 3, .j = 50, .i = 71, .u = 331}, DType::f16, false), "h200").empty());
}

TEST_CASE("why other contractions have none") {
  Kernel f32 = gemm(64, 64, 64);
  for (Value &value : f32.values) value.dtype = DType::f32;
  CHECK(exclusion(f32) == "element type f32; f16, bf16, and f32 at precision tf32 are taken");
  CHECK_THROWS_WITH(codegen::emit(f32, rowMajorGemm(), "sm_80"),
                    Catch::Contains("f32 at precision tf32 are taken"));
  Kernel mixed = gemm(64, 64, 64);
  mixed.values[2].dtype = DType::f32;
  CHECK(exclusion(mixed).find("one element type") != std::string::npos);
}

TEST_CASE("knobs that no block has") {
  const auto rejection = [](Sm80GemmKnobs knobs) { return sm80KnobsRejection(knobs, 99 * 1024); };
  CHECK(rejection({}) == "");
  CHECK(rejection({.tileM = 96}).find("96 x 128") != std::string::npos);
  CHECK(rejection({.tileK = 16}).find("k-tiles of 16") != std::string::npos);
  CHECK(rejection({.stages = 1}) == "1 stages; 2 or more are taken");
  CHECK(rejection({.groupM = 0}) == "group-M 0; 1 or more is taken");
  CHECK(rejection({.stages = 7}).find("shared memory") != std::string::npos);
  CHECK(rejection({.tileM = 256, .stages = 2, .warpsM = 4, .warpsN = 1}).find("whole passes") !=
        std::string::npos);
  CHECK(rejection({.tileM = 256, .tileN = 256, .stages = 2, .warpsM = 4, .warpsN = 2})
            .find("256 accumulators") != std::string::npos);
  CHECK(rejection({.warpsM = 16, .warpsN = 1}).find("no blocks of 16 x 16") != std::string::npos);
  CHECK(rejection({.warpsM = 0}).find("no blocks") != std::string::npos);
  CHECK(rejection({.warpsM = 4, .warpsN = 4}).find("512 threads") != std::string::npos);
  CHECK_THROWS_WITH(codegen::emit(gemm(64, 64, 64), rowMajorGemm({.tileN = 96}), "sm_80"),
                    Catch::Contains("96"));
}

TEST_CASE("every configuration is emitted for every target from sm_80 on: a block a tile") {
  for (const Kernel &kernel :
       {gemm(512, 3072, 1024), gemm(33, 65, 7), gemm(1, 1, 1), gemm(8, 4096, 64),
        contractKernel({{'p', 64}, {'h', 2}, {'b', 3}, {'k', 40}, {'j', 72}}, "phbk", "phbj",
                       "hbjk")})
    for (const Configuration &one : nonEmpty(own(kernel))) {
      const auto &knobs = one.knobs.get<Sm80GemmKnobs>();
      const GemmProblem shape = *wgmmaProblem(kernel, one);
      for (const char *architecture : {"sm_80", "sm_86", "sm_89", "sm_90a"}) {
        const codegen::EmittedKernel emitted = codegen::emit(kernel, one, architecture);
        CHECK(emitted.parameters.size() == 3);
        CHECK(emitted.launch.grid[0] == sm80Tiles(shape, knobs));
        CHECK(emitted.launch.block[0] == sm80Threads(knobs));
        CHECK(emitted.launch.sharedBytes == sm80SharedBytes(knobs));
        CHECK(emitted.launch.sharedBytes <= 99 * 1024);
      }
    }
}

TEST_CASE(
    "what follows a contraction is finished by the warps that multiply, in every order of operands "
    "and result") {
  std::set<bool> drawn;  // dropout with the result's axes in either order
  for (const ContractionExtents &extents :
       {ContractionExtents{.b = 1, .j = 144, .i = 136, .u = 264},
        {.b = 3, .j = 50, .i = 71, .u = 331}})
    for (const DType type : {DType::f16, DType::bf16, DType::f32})
      for (const Kernel &sample : nonEmpty(fusedContractions(extents, type))) {
        const Kernel kernel = type == DType::f32 ? inTf32(sample) : sample;
        INFO(kernel.name << " " << nameOf(type));
        CHECK(epilogueRejections(findDevice("a100"))(kernel).empty());
        std::set<std::string> orientations;
        for (const Configuration &one : nonEmpty(own(kernel))) {
          const GemmProblem shape = *mmaSyncProblem(kernel, one);
          const std::string orientation =
              fmt::format("{}{}{}", shape.isSwapped, shape.a.isAlongK(), shape.b.isAlongK());
          if (!orientations.insert(orientation).second) continue;
          const codegen::EmittedKernel emitted = codegen::emit(kernel, one, "sm_80");
          if (orientations.size() == 1) requireEveryOp(kernel, one, "sm_80");
          const auto count = [&](codegen::Parameter::Kind kind) {
            return size_t(std::ranges::count(emitted.parameters, kind, &codegen::Parameter::kind));
          };
          CHECK(count(codegen::Parameter::Kind::input) == kernel.inputs.size());
          CHECK(count(codegen::Parameter::Kind::output) == kernel.outputs.size());
          const bool draws = std::ranges::any_of(
              kernel.body, [](const BodyOp &op) { return op.kind == OpKind::dropout; });
          CHECK(count(codegen::Parameter::Kind::dropoutKey) == (draws ? 1 : 0));
          if (draws) drawn.insert(shape.isSwapped);
        }
        CHECK(orientations.size() == 8);
      }
  CHECK(drawn.size() == 2);
}

TEST_CASE("epilogues that warps do not finish") {
  for (const Kernel &kernel : nonEmpty(fusedReductions({}, DType::f16))) {
    INFO(kernel.name);
    CHECK(own(kernel).empty());
    CHECK(exclusion(kernel).find("is a sum of what the epilogue computes; epilogues of mma.sync "
                                 "add up nothing over a tile") != std::string::npos);
    const Configuration rows = [&] {
      Configuration configuration{.knobs = Sm80GemmKnobs{}};
      for (const ValueId value : kernel.inputs)
        configuration.inputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
      for (const ValueId value : kernel.outputs)
        configuration.outputs.push_back(rowMajor(kernel.values[size_t(value)].axes.size()));
      return configuration;
    }();
    CHECK_THROWS_WITH(codegen::emit(kernel, rows, "sm_80"),
                      Catch::Contains("is a sum of what the epilogue computes"));
  }
  Kernel narrow = gemmBias({}, DType::f16);
  narrow.values[size_t(narrow.inputs[2])].dtype = DType::f8e4m3;
  CHECK(exclusion(narrow) == "'bias' is f8e4m3; an epilogue takes f32, f16 and bf16");
  FusedContraction several("several", {}, DType::f16);
  std::vector<int> rest;
  for (const char *name : {"r", "s", "t", "v"}) rest.push_back(several.input(name, "bju"));
  int sum = several.gemm();
  for (const int one : rest)
    sum = several.map("add", "{0} + {1}", {sum, one}, "sum" + std::to_string(one));
  CHECK(exclusion(several.build({sum})) ==
        "the epilogue reads 4 tensors of several axes; 3 are taken");
}

TEST_CASE(
    "warps end with a local softmax where they hold whole sub-vectors, contiguous in the result") {
  for (const int64_t length : {16, 32, 64}) {
    const Kernel kernel =
        scoresLocalSoftmax({.b = 8, .h = 16, .j = 512, .k = 512, .length = length}, DType::f16);
    const std::vector<Configuration> all = own(kernel);
    CHECK(!all.empty());
    for (const Configuration &one : nonEmpty(all)) {
      const auto &tile = one.knobs.get<Sm80GemmKnobs>();
      CHECK(tile.tileN / tile.warpsN % length == 0);
      CHECK(mmaSyncProblem(kernel, one)->isSwapped);  // keys are the first operand
      requireAllTensors(codegen::emit(kernel, one, "sm_80"),
                        kernel);  // exponentials, maxima and sums
    }
    Configuration few = all.front();
    few.knobs = Sm80GemmKnobs{
        .tileM = 128, .tileN = 64, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2};
    if (length == 64)
      CHECK_THROWS_WITH(
          codegen::emit(kernel, few, "sm_80"),
          Catch::Contains("32 columns a warp, and sub-vectors of 64; a warp holds whole ones"));
    Configuration across = all.front();
    std::swap(across.outputs[0].order[2], across.outputs[0].order[3]);
    CHECK_THROWS_WITH(codegen::emit(kernel, across, "sm_80"),
                      Catch::Contains("runs along an axis in which 'out0' is not contiguous"));
  }
  // On sm_90a: not because of the layouts that end so along another axis.
  for (const bool startsWithKeys : {false, true}) {
    std::string reason;
    for (const Exclusion &excluded :
         enumerate(scoresLocalSoftmax({}, DType::f16, startsWithKeys), findDevice("h200")).excluded)
      if (excluded.family == "gemm-sm80") reason = excluded.reason;
    CHECK(reason == "gemm-sm90 takes operands whose rows start at multiples of 16 bytes");
  }
  CHECK(exclusion(plainLocalSoftmax({.length = 128}, DType::f16)) ==
        "'local_softmax' has sub-vectors of 128 elements; 16, 32 and 64 are taken behind a GEMM");
  CHECK(exclusion(inTf32(plainLocalSoftmax({}, DType::f32))) ==
        "'local_softmax' follows a GEMM of tf32; mma.sync end so where operands have "
        "16 bits");
}

TEST_CASE("a tile leaves an epilogue the registers that its sums do not take") {
  const Sm80GemmKnobs large{}, small{.tileM = 64, .tileN = 64, .tileK = 64};
  const auto sumsOf = [](const Sm80GemmKnobs &tile) {
    return tile.tileM * tile.tileN / sm80Threads(tile);
  };
  const auto leastRejected = [](const Sm80GemmKnobs &tile) {
    int registers = 0;
    while (sm80RegistersRejection(tile, registers).empty()) ++registers;
    return registers;
  };
  REQUIRE(sumsOf(large) > sumsOf(small));
  CHECK(leastRejected(large) > 0);
  CHECK(leastRejected(large) + sumsOf(large) == leastRejected(small) + sumsOf(small));
  CHECK(leastRejected(large) + sumsOf(large) <= 255);  // that a thread can have
  CHECK_THAT(
      sm80RegistersRejection(large, leastRejected(large)),
      Catch::StartsWith(fmt::format("{} accumulators a thread and {} registers of the epilogue; ",
                                    sumsOf(large), leastRejected(large))));
  FusedContraction vectors("vectors", {}, DType::f16);
  std::vector<int> rows;
  for (int n = 0; n < 8; ++n) rows.push_back(vectors.input("rows" + std::to_string(n), "bj"));
  int scaled = vectors.gemm();
  for (const int one : rows)
    scaled = vectors.map("mul", "{0} * {1}", {scaled, one}, "scaled" + std::to_string(one));
  const Kernel kernel = vectors.build({scaled});
  CHECK(epilogueRegisters(kernel, *contractionRegion(kernel)) >= leastRejected(large));
  CHECK(!own(kernel).empty());
  for (const Configuration &one : nonEmpty(own(kernel))) {
    const auto &knobs = one.knobs.get<Sm80GemmKnobs>();
    CHECK(sumsOf(knobs) < sumsOf(large));
  }
  Configuration configuration = own(kernel).front();
  configuration.knobs = large;
  CHECK_THROWS_WITH(codegen::emit(kernel, configuration, "sm_80"),
                    Catch::Contains("take smaller tiles"));
}

TEST_CASE(
    "unmeasured, a fused kernel costs more than its GEMM and less than that and a loop kernel "
    "behind it") {
  for (const bool hasLibrary : {true, false}) {
    Device a100 = findDevice("a100");
    if (!hasLibrary) a100.familiesTakenAway.insert(&libraryFamily);
    const auto best = [&](const Kernel &kernel, auto family) {
      double least = 1;
      for (const Configuration &one : ofFamily<decltype(family)>(kernel, a100))
        least = std::min(least, analyticCostModel(a100)->cost(kernel, one).seconds);
      return least;
    };
    const ContractionExtents extents{.b = 8, .j = 512, .i = 1024, .u = 1024};
    const Kernel fused = gemmBiasDropoutResidual(extents, DType::f16);
    const double gemm =
        best(contractKernel({{'b', 8}, {'i', 1024}, {'j', 512}, {'u', 1024}}, "bji", "iu", "bju"),
             Sm80GemmKnobs{});
    KernelBuilder rest("rest", {{'b', 8}, {'j', 512}, {'u', 1024}});
    const int x = rest.input("x", "bju", DType::f16), y = rest.input("y", "bju", DType::f16);
    const int sum =
        rest.op("residual", OperatorClass::elementwise, {x, y}, "sum", "bju", "", DType::f16);
    rest.last().expression = Expression::parse("{0} + {1}");
    const Kernel behind = rest.build({sum});
    const double own = best(fused, Sm80GemmKnobs{});
    CHECK(own > gemm);
    CHECK(own < gemm + best(behind, LoopKnobs{}));
  }
}

TEST_CASE("a configuration of warps is one line of a GEMM's subject, and is read back") {
  const Sm80GemmKnobs knobs{.tileM = 64, .tileK = 64, .stages = 3};
  const Kernel kernel = gemm(512, 3072, 1024);
  const std::string line = configurationLine(kernel, rowMajorGemm(knobs));
  CHECK(line == "gemm-sm80 1024,1:0_3072,1:0>3072,1:0 tileM=64 tileK=64 stages=3");
  CHECK(subjectOf(kernel, rowMajorGemm(knobs)).text == "gemm f16 1 x 512 x 3072 x 1024");
  const LineFields parts = splitLine(line);
  CHECK((parseKnobs(parts.family, parts.knobs, kernel)).get<Sm80GemmKnobs>() == knobs);
}

TEST_CASE("few tiles are tried: those of the shape, for every device") {
  for (const char *device : {"a100", "rtx3090"})
    for (const auto &[m, n] :
         {std::pair<int64_t, int64_t>{4096, 4096}, {300, 1000}, {4096, 64}, {8, 4096}, {1, 1}}) {
      std::set<Knobs> knobs;
      for (const Configuration &one : own(gemm(m, n, 1024), device)) knobs.insert(one.knobs);
      INFO(m << " x " << n);
      CHECK(knobs.size() >= 2);
      CHECK(knobs.size() <= 8);  // both orientations of the result
    }
}

TEST_CASE("unmeasured, the price stands between the library's and plain FMA's") {
  Device a100 = findDevice("a100");
  const auto best = [&](const Kernel &kernel, const std::vector<Configuration> &configurations) {
    double least = 1;
    for (const Configuration &one : configurations)
      least = std::min(least, analyticCostModel(a100)->cost(kernel, one).seconds);
    return least;
  };
  for (const Kernel &kernel :
       {gemm(4096, 4096, 1024), gemm(4096, 1024, 4096), gemm(512, 768, 768)}) {
    const double warps = best(kernel, own(kernel));
    CHECK(warps > best(kernel, ofFamily<LibraryKnobs>(kernel, a100)));
    CHECK(warps < 0.5 * best(kernel, ofFamily<FmaGemmKnobs>(kernel, a100)));
  }
  a100.familiesTakenAway.insert(&libraryFamily);
  const Kernel large = gemm(4096, 4096, 4096);
  const double flops = 2 * 4096.0 * 4096 * 4096 / best(large, own(large));
  CHECK(flops > 0.6 * a100.tensorFlops.at(DType::f16));
  CHECK(flops < 0.9 * a100.tensorFlops.at(DType::f16));
}

TEST_CASE("padded rows are priced as the library's rows of whole vectors, dense ones are not") {
  const Device &a100 = findDevice("a100");
  const auto seconds = [&](const Kernel &kernel, int64_t pitchUnit, const Knobs &knobs) {
    Configuration configuration = rowMajorGemm();
    configuration.knobs = knobs;
    for (Layout *layout :
         {&configuration.inputs[0], &configuration.inputs[1], &configuration.outputs[0]})
      layout->pitchUnit = pitchUnit;
    return analyticCostModel(a100)->cost(kernel, configuration).seconds;
  };
  const Sm80GemmKnobs tile{.tileM = 128, .tileN = 128};
  const Knobs library = libraryFamily.defaults();
  const Kernel odd = gemm(1001, 1025, 1025), whole = gemm(1001, 1032, 1032);
  CHECK(seconds(odd, 1, library) > 3 * seconds(whole, 1, library));
  CHECK(seconds(odd, 8, library) > 3 * seconds(whole, 1, library));
  CHECK(seconds(odd, 8, tile) > seconds(whole, 1, library));
  CHECK(seconds(odd, 8, tile) <= 1.01 * seconds(whole, 1, tile));
  CHECK(seconds(odd, 1, tile) > seconds(odd, 1, library));
  // One operand that is not padded goes by single elements in the library, too.
  Configuration mixed = rowMajorGemm(tile);
  mixed.inputs[0].pitchUnit = mixed.outputs[0].pitchUnit = 8;
  CHECK(analyticCostModel(a100)->cost(odd, mixed).seconds > seconds(odd, 1, library));
}
