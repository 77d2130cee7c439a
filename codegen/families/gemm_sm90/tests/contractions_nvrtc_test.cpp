// Every kind of contraction by WGMMA compiles for sm_90a without spills and warnings (design rule
// 4): every tile, in orientations and with what stands around the GEMM.
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmFamily.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "tests/nvrtc/EarlyBatch.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleRotary.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTf32.h"
#include "tests/unit/samples/SampleTokens.h"

using namespace weft;
using nvrtctest::Batch;

namespace {

/// One configuration for every pair of knobs and orientation of the operands; of those whose k
/// blocks share, or of the others. Tiles that share k-tiles of B have a separate case.
void addOrientations(Batch &batch, const std::string &name, const Kernel &kernel,
                     std::set<std::string> &seen, bool isSplit = false) {
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
    if (!knobs || knobs->schedule == Sm90Schedule::singleConsumer ||
        knobs->groupM != Sm90GemmKnobs{}.groupM || knobs->multicastB > 1 ||
        (knobs->splitK > 1) != isSplit)
      return true;
    const GemmProblem gemm = *wgmmaProblem(kernel, configuration);
    const std::string text =
        fmt::format("{} {}{} {} {}{}{}", describe(kernel, *knobs), gemm.a.isAlongK() ? 'k' : 'o',
                    gemm.b.isAlongK() ? 'k' : 'o', nameOf(kernel.values[0].dtype), gemm.a.usesTma,
                    gemm.b.usesTma, gemm.usesTma);
    if (seen.insert(text).second) batch.add(name, kernel, configuration, "sm_90a");
    return true;
  });
}

/// Of the layouts that the family takes, every n-th with its own tiles.
void addSm90(Batch &batch, const std::string &name, const Kernel &kernel, size_t count) {
  std::vector<Configuration> all;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    if (configuration.knobs.is<Sm90GemmKnobs>()) all.push_back(configuration);
    return true;
  });
  const size_t step =
      std::max<size_t>(1, all.size() / count) | 1;  // odd: other knobs with other layouts
  for (size_t i = 0; i < all.size(); i += step) batch.add(name, kernel, all[i], "sm_90a");
}

/// One configuration of sm_90a for each number of blocks above one that share the k of a tile, and
/// each schedule.
void addSplits(Batch &batch, const std::string &name, const Kernel &kernel) {
  std::set<std::string> seen;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
    if (knobs && knobs->splitK > 1 &&
        seen.insert(fmt::format("{} {}", knobs->splitK, int(knobs->schedule))).second)
      batch.add(name, kernel, configuration, "sm_90a");
    return true;
  });
  CHECK(seen.size() >= 3);
}

/// One configuration for every tile of sm_90a and each order of the result, of scaled sums also for
/// each operand that is along k; `tiles` gains what they are. Returns how many scale sums.
size_t addEachTile(Batch &batch, const Kernel &kernel, std::set<std::string> &tiles) {
  size_t scaled = 0;
  std::set<std::string> seen;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
    if (!knobs || knobs->groupM != Sm90GemmKnobs{}.groupM) return true;
    const GemmProblem gemm = *wgmmaProblem(kernel, configuration);
    const std::string way =
        gemm.isScaled() ? fmt::format(", scaled, {}{}", gemm.a.isAlongK(), gemm.b.isAlongK()) : "";
    if (!seen.insert(fmt::format("{} {}{}", describe(kernel, *knobs), gemm.isSwapped, way)).second)
      return true;
    tiles.insert(describe(kernel, *knobs));
    batch.add(kernel.name, kernel, configuration, "sm_90a");
    scaled += gemm.isScaled();
    return true;
  });
  return scaled;
}

}  // namespace

TEST_CASE(
    "tensor-core contractions of sm_90a: every tile in every orientation, and rows that start "
    "anywhere") {
  Batch batch;
  std::set<std::string> seen;
  const auto gemm = [](int64_t m, int64_t n, int64_t k, DType dtype) {
    Kernel kernel = samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in");
    for (Value &value : kernel.values) value.dtype = dtype;
    return kernel;
  };
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{4096, 4096},
                             {1024, 3072},
                             {2640, 768},
                             {512, 3072},
                             {4096, 64},
                             {304, 1000}})
    addOrientations(batch, "gemm", gemm(m, n, 1024, DType::f16), seen);
  const size_t aligned = seen.size();
  CHECK(aligned == 10 * 4);  // tiles, orientations
  addOrientations(batch, "bf16", gemm(1000, 64, 520, DType::bf16), seen);
  addOrientations(batch, "odd", gemm(1001, 777, 555, DType::f16), seen);
  Kernel scaled =
      samples::contractKernel({{'b', 2}, {'i', 129}, {'k', 64}, {'n', 40}}, "bik", "bkn", "bin");
  scaled.body[0].attributes["scale"] = 0.125;
  batch.addSamples("scaled batch", scaled, findDevice("h200"), 8);
  batch.buildAndCheck(aligned + 16, 1);
}

TEST_CASE("tensor-core contractions of sm_90a whose k the blocks of a cluster share") {
  Batch batch;
  std::set<std::string> seen;
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{512, 3072, 1024},
                                {304, 1000, 1024},
                                {8, 4096, 4096},
                                {128, 256, 1024}})
    addOrientations(batch, "gemm",
                    samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in"), seen,
                    true);
  batch.addSamples(
      "residual",
      samples::gemmBiasDropoutResidual({.b = 2, .j = 72, .i = 1000, .u = 264}, DType::f16),
      findDevice("h200"), 4);
  batch.buildAndCheck(24, 1);
}

TEST_CASE(
    "single-consumer tiles of sm_90a: every width, both sides, k of a block and of a cluster") {
  Batch batch;
  std::set<std::string> seen;
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{8, 4096, 4096},
                                {16, 1024, 1024},
                                {21, 2000, 648},
                                {32, 4096, 512},
                                {40, 1000, 1024},
                                {48, 4096, 4096},
                                {520, 520, 520},
                                {304, 1000, 520},
                                {200, 70, 64}})
    for (const DType dtype : {DType::f16, DType::bf16}) {
      Kernel kernel = samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in");
      for (Value &value : kernel.values) value.dtype = dtype;
      forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
        const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
        if (!knobs || knobs->schedule != Sm90Schedule::singleConsumer) return true;
        const GemmProblem gemm = *wgmmaProblem(kernel, configuration);
        const std::string text = fmt::format("{} {}{} {}{}", knobs->tileM, knobs->tileN,
                                             nameOf(dtype), gemm.a.isAlongK(), gemm.b.isAlongK());
        if (seen.insert(text).second) batch.add("narrow", kernel, configuration, "sm_90a");
        return true;
      });
    }
  batch.buildAndCheck(2 * 2 * 6, 1);
}

TEST_CASE(
    "single-consumer tiles of sm_90a with what follows a GEMM: every width, both orientations of "
    "C, k of "
    "a block and of a cluster") {
  Batch batch;
  std::set<std::string> seen;
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{.b = 1, .j = 8, .i = 1024, .u = 4096},
        {.b = 3, .j = 5, .i = 512, .u = 2000},
        {.b = 1, .j = 21, .i = 648, .u = 1001},
        {.b = 2, .j = 16, .i = 1024, .u = 1024},
        {.b = 1, .j = 37, .i = 1024, .u = 777},
        {.b = 2, .j = 24, .i = 4096, .u = 4096}})
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const Kernel &kernel : samples::singleConsumerEpilogues(extents, dtype))
        forEachConfiguration(
            kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
              const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
              if (!knobs || knobs->schedule != Sm90Schedule::singleConsumer) return true;
              const SingleConsumerSides sides = singleConsumerSides(*knobs);
              const std::string text =
                  fmt::format("{} {} {} {}", kernel.name, sides.columns, sides.isAlongM,
                              sides.columns == 8 ? nameOf(dtype) : "");
              if (seen.insert(text).second) batch.add(kernel.name, kernel, configuration, "sm_90a");
              return true;
            });
  batch.buildAndCheck(8 * 2 * 6, 1);
}

TEST_CASE(
    "products of 8-bit floats on sm_90a: every tile, every pair of formats, results of 16 and 32 "
    "bits, rows that start anywhere") {
  Batch batch;
  std::set<std::string> seen;
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{4096, 4096},
                             {1024, 3072},
                             {2640, 768},
                             {512, 3072},
                             {4096, 64},
                             {304, 1000}})
    addOrientations(batch, "gemm",
                    samples::float8Gemm({.m = m, .n = n, .k = 2048}, samples::float8Types[0]),
                    seen);
  CHECK(seen.size() == 10);  // tiles: both operands lie along k
  for (const GemmTypes &types : samples::float8Types) {
    const std::string name = nameOf(types);
    addOrientations(batch, name, samples::float8Gemm({.m = 4096, .n = 4096, .k = 4096}, types),
                    seen);
    batch.addSamples(name + " odd",
                     samples::float8Gemm({.b = 2, .m = 1001, .n = 777, .k = 555}, types),
                     findDevice("h200"), 6);
    batch.addSamples(name + " scaled",
                     samples::scaledFloat8Gemm({.b = 3, .m = 1000, .n = 784, .k = 560}, types),
                     findDevice("h200"), 4);
  }
  std::set<std::string> split;
  addOrientations(batch, "split",
                  samples::float8Gemm({.m = 128, .n = 256, .k = 4096}, samples::float8Types[0]),
                  split, true);
  addOrientations(batch, "split",
                  samples::float8Gemm({.m = 128, .n = 256, .k = 4096}, samples::float8Types[2]),
                  split, true);
  batch.buildAndCheck(50, 1);
}

TEST_CASE(
    "products of tf32 on sm_90a: every tile, results of 16 and 32 bits, rows that start anywhere, "
    "epilogues, shared k") {
  Batch batch;
  std::set<std::string> seen;
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{4096, 4096},
                             {1024, 3072},
                             {2640, 768},
                             {512, 3072},
                             {4096, 64},
                             {304, 1000}})
    addOrientations(batch, "gemm", samples::tf32Gemm({.m = m, .n = n, .k = 2048}), seen);
  CHECK(seen.size() == 10);  // tiles: both operands lie along k
  for (const DType result : {DType::f32, DType::f16, DType::bf16})
    batch.addSamples("odd", samples::tf32Gemm({.b = 2, .m = 1001, .n = 777, .k = 555}, result),
                     findDevice("h200"), 6);
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{}, {.b = 3, .j = 50, .i = 71, .u = 331}})
    for (const Kernel &kernel : samples::fusedContractions(extents, DType::f32))
      addSm90(batch, kernel.name, samples::inTf32(kernel), 4);
  std::set<std::string> anywhere, split;
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{4096, 4096},
                             {1024, 3072},
                             {2640, 768},
                             {512, 3072},
                             {4096, 64},
                             {304, 1000}})
    addOrientations(batch, "anywhere", samples::tf32Gemm({.m = m, .n = n, .k = 2047}), anywhere);
  CHECK(anywhere.size() >= 8);
  addOrientations(batch, "split", samples::tf32Gemm({.m = 128, .n = 256, .k = 4096}), split, true);
  batch.buildAndCheck(50, 1);
}

TEST_CASE("tensor-core contractions of sm_90a with epilogues") {
  Batch batch;
  std::set<std::string> tiles;
  for (const Kernel &kernel :
       samples::fusedContractions({.b = 8, .j = 512, .i = 1024, .u = 3072}, DType::f16))
    addEachTile(batch, kernel, tiles);
  for (const Kernel &kernel :
       samples::fusedContractions({.b = 3, .j = 50, .i = 72, .u = 331}, DType::bf16))
    batch.addSamples(kernel.name, kernel, findDevice("h200"), 3);
  for (const samples::ContractionExtents &extents :
       {samples::ContractionExtents{.b = 8, .j = 512, .i = 64, .u = 1024},
        {.b = 3, .j = 50, .i = 72, .u = 331}})
    for (const Kernel &kernel : samples::coordinateContractions(extents, DType::f16))
      addEachTile(batch, kernel, tiles);
  CHECK(tiles.size() >= 4);
  batch.buildAndCheck(50, 1);
}

TEST_CASE("tensor-core contractions of sm_90a that turn heads: every tile") {
  Batch batch;
  std::set<std::string> tiles;
  const samples::RotaryExtents large{.b = 2, .j = 2048, .g = 48, .p = 128, .i = 4096},
      usual{.b = 8, .j = 512, .g = 48, .p = 64, .i = 1024},
      few{.b = 1, .j = 64, .g = 8, .p = 64, .i = 4096};
  for (const samples::RotaryForm &form : {samples::RotaryForm{.end = 40},
                                          {.hasStarts = true, .hasResidual = true},
                                          {.isHalved = false, .turned = 32}})
    for (const samples::RotaryExtents &extents : {large, usual})
      addEachTile(batch, samples::rotatedProjection(extents, DType::f16, form), tiles);
  addSplits(batch, "few heads", samples::rotatedProjection(few, DType::bf16, {}));
  addSm90(batch, "tokens", samples::rotatedTokens(large, DType::f16, {.end = 40}), 4);
  CHECK(tiles.size() >= 6);
  batch.buildAndCheck(30, 1);
}

TEST_CASE("tensor-core contractions of sm_90a that leave out tiles behind the last token") {
  Batch batch;
  for (const bool addsRest : {false, true}) {
    const Kernel kernel = samples::gemmOfTokens({.t = 4096, .i = 1024, .u = 3072, .sequences = 8},
                                                DType::f16, addsRest, !addsRest);
    addSm90(batch, "tokens", kernel, 6);
  }
  for (const DType dtype : {DType::f16, DType::f32}) {
    const Kernel kernel = samples::gemmOfTokens({.t = 26, .i = 1024, .u = 3072, .sequences = 1},
                                                dtype, false, false, true);
    addSplits(batch, "few tokens", dtype == DType::f32 ? samples::inTf32(kernel) : kernel);
  }
  batch.buildAndCheck(14, 1);
}

TEST_CASE("contractions of sm_90a that leave out tiles of scores which a block mask hides") {
  Batch batch;
  for (const bool hasSoftmax : {false, true}) {
    const Kernel kernel =
        samples::scoresInBlocks({.b = 1, .h = 16, .j = 1000, .k = 1000}, DType::f16,
                                "bigbird(block=64,seed=0)", hasSoftmax);
    addSm90(batch, "blocks", kernel, 8);
  }
  batch.buildAndCheck(14, 1);
}

TEST_CASE(
    "tensor-core contractions of sm_90a whose epilogues sum: every tile, results in both orders") {
  Batch batch;
  std::set<std::string> tiles;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const Kernel &kernel :
         samples::fusedReductions({.b = 8, .j = 512, .i = 1024, .u = 3072}, dtype))
      addEachTile(batch, kernel, tiles);
  for (const Kernel &kernel :
       samples::fusedReductions({.b = 3, .j = 50, .i = 72, .u = 331}, DType::bf16))
    batch.addSamples(kernel.name, kernel, findDevice("h200"), 3);
  CHECK(tiles.size() >= 4);
  batch.buildAndCheck(40, 1);
}

TEST_CASE(
    "tensor-core contractions of sm_90a that end with a local softmax: every tile, sub-vectors of "
    "every "
    "length, results in both orders") {
  Batch batch;
  std::set<std::string> tiles;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::ScoreExtents &extents :
         {samples::ScoreExtents{
              .b = 8, .h = 16, .j = 512, .k = 512, .length = dtype == DType::f16 ? 64 : 16},
          {.b = 2, .h = 3, .j = 77, .k = 203, .length = 32}})
      for (const Kernel &kernel : samples::localSoftmaxes(extents, dtype))
        addEachTile(batch, kernel, tiles);
  for (const Kernel &kernel : samples::localSoftmaxes({.b = 2, .h = 3, .j = 77, .k = 203},
                                                      DType::f32)) {  // stored by threads, in f32
    const Kernel read = samples::inTf32(kernel);
    addEachTile(batch, read, tiles);
  }
  CHECK(tiles.size() >= 6);
  batch.buildAndCheck(100, 1);
}

TEST_CASE("contractions with several strides along a group of axes") {
  const std::map<char, int64_t> large{{'b', 8},   {'h', 16}, {'i', 1024}, {'j', 512},
                                      {'k', 512}, {'p', 64}, {'w', 2}},
      odd{{'b', 3}, {'h', 5}, {'i', 1000}, {'j', 192}, {'k', 328}, {'p', 64}, {'w', 4}};
  Batch batch;
  size_t strided = 0, turn = 0;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const auto &extents : {large, odd}) {
      std::vector<Kernel> kernels = {samples::stridedProjection(extents, dtype)};
      for (const samples::StridedGemmCase &gemm : samples::stridedGemmCases)
        kernels.push_back(samples::stridedKernel(gemm, extents, dtype));
      for (const Kernel &kernel : kernels) {
        const auto space = severalStridesSpace(kernel, findDevice("h200"));
        REQUIRE(space);
        for (const size_t step : {size_t(0), space->knobs.size() / 2}) {
          const Configuration configuration = samples::stridedConfiguration(
              kernel, space->knobs[(turn++ + step) % space->knobs.size()]);
          INFO(fmt::to_string(turn));
          REQUIRE(reasonOf(wgmmaProblem(kernel, configuration)) == "");
          strided += wgmmaProblem(kernel, configuration)->hasSeveralStrides() ? 1 : 0;
          batch.add(fmt::format("strides {} {}", kernel.name,
                                std::get<std::string>(kernel.body[0].attributes.at("spec"))),
                    kernel, configuration, "sm_90a");
        }
      }
    }
  CHECK(strided == turn);
  batch.buildAndCheck(80, 1);
}

TEST_CASE("contractions whose blocks take stream-K runs of k-tiles") {
  Batch batch;
  size_t tiles = 0;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const auto &[a, b, c] :
         {std::tuple("mk", "nk", "mn"), {"mk", "kn", "nm"}, {"km", "nk", "mn"}, {"km", "kn", "mn"}})
      for (const auto &extents : {std::map<char, int64_t>{{'m', 1024}, {'n', 3072}, {'k', 4096}},
                                  {{'m', 2640}, {'n', 2308}, {'k', 776}}}) {
        Kernel kernel = samples::contractKernel(extents, a, b, c);
        for (Value &value : kernel.values) value.dtype = dtype;
        if (tiles % 2 == 1) kernel.body[0].attributes["scale"] = 0.125;
        const Configuration configuration = samples::stridedConfiguration(kernel, Sm90GemmKnobs{});
        for (const Sm90GemmKnobs &tile :
             streamKTiles(kernel, {rowMajor(2), rowMajor(2), rowMajor(2)}, findDevice("h200"))) {
          Configuration one = configuration;
          one.knobs = tile;
          batch.add("streamK", kernel, one, "sm_90a");
          ++tiles;
        }
      }
  for (const samples::TokenExtents &extents :
       {samples::TokenExtents{.t = 4096, .i = 768, .u = 3072, .sequences = 8},
        samples::TokenExtents{.t = 1000, .i = 2640, .u = 264, .sequences = 3}}) {
    const Kernel kernel = samples::sumOverTokens(extents, DType::f16);
    Configuration one = samples::stridedConfiguration(kernel, Sm90GemmKnobs{});
    for (const Sm90GemmKnobs &tile : streamKTiles(
             kernel, {rowMajor(2), rowMajor(2), rowMajor(1), rowMajor(2)}, findDevice("h200"))) {
      one.knobs = tile;
      batch.add("streamK of tokens", kernel, one, "sm_90a");
      ++tiles;
    }
  }
  CHECK(tiles > 28);
  batch.buildAndCheck(20, 1);
}

TEST_CASE("contractions that end with the last of packed tokens") {
  Batch batch;
  std::set<std::string> seen;
  for (const samples::TokenExtents &extents :
       {samples::TokenExtents{.t = 4096, .i = 768, .u = 3072, .sequences = 8},
        samples::TokenExtents{.t = 1000, .i = 264, .u = 136, .sequences = 3},
        samples::TokenExtents{.t = 16384, .i = 136, .u = 4088, .sequences = 3}})
    for (const DType dtype : {DType::f16, DType::bf16}) {
      const Kernel kernel = samples::sumOverTokens(extents, dtype);
      forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
        const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
        if (!knobs || knobs->streamK != 0 || !sm90GemmFamily.endsSums(kernel, *knobs)) return true;
        const std::string tile = fmt::format("{} {} {} {} {}", int(knobs->schedule), knobs->tileM,
                                             knobs->tileN, knobs->splitK > 1, knobs->multicastB);
        if (seen.insert(tile).second) batch.add("sums of tokens", kernel, configuration, "sm_90a");
        return true;
      });
    }
  CHECK(std::ranges::count_if(
            seen, [](const std::string &tile) { return tile.ends_with(" true 1"); }) > 2);
  CHECK(seen.size() > 8);
  batch.buildAndCheck(20, 1);
}

TEST_CASE("contractions whose blocks load k-tiles of B for each other") {
  Batch batch;
  std::set<std::string> seen;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const auto &[m, n, k] :
         {std::array<int64_t, 3>{4096, 4088, 1000}, {512, 1000, 1016}, {2048, 264, 520}}) {
      Kernel kernel = samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in");
      for (Value &value : kernel.values) value.dtype = dtype;
      forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
        const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
        if (!knobs || knobs->multicastB == 1) return true;
        const GemmProblem gemm = *wgmmaProblem(kernel, configuration);
        if (seen.insert(fmt::format("{} {}{}", describe(kernel, configuration.knobs),
                                    gemm.a.isAlongK(), gemm.b.isAlongK()))
                .second)
          batch.add("multicastB", kernel, configuration, "sm_90a");
        return true;
      });
    }
  for (const Kernel &kernel :
       samples::fusedReductions({.b = 4, .j = 128, .i = 1000, .u = 1016}, DType::bf16))
    for (const int tileN : {128, 256}) {
      const Sm90GemmKnobs tile{
          .schedule = tileN == 128 ? Sm90Schedule::pingPong : Sm90Schedule::cooperative,
          .tileM = 128,
          .tileN = tileN,
          .stages = tileN == 128 ? 5 : 3,
          .epilogueStages = 4,
          .multicastB = 2};
      const Configuration configuration = samples::stridedConfiguration(kernel, tile);
      if (sm90Rejection(kernel, configuration, tile, findDevice("h200").sharedMemoryPerBlock)
              .empty())
        batch.add("multicastB", kernel, configuration, "sm_90a");
    }
  CHECK(seen.size() >= 12);
  batch.buildAndCheck(seen.size() + 4, 1);
}

TEST_CASE(
    "operands that are transformed on load, on sm_90a: every tile, both operands, in place and by "
    "threads "
    "that copy") {
  Batch batch;
  std::set<std::string> seen, tiles;
  const samples::PrologueExtents large{
      .b = 8, .h = 16, .j = 512, .k = 512, .i = 1024, .p = 64, .u = 3072},
      odd{.b = 3, .h = 2, .j = 50, .k = 203, .i = 203, .p = 40, .u = 331};
  for (const Kernel &kernel : samples::transformedContractions(large, DType::f16))
    addEachTile(batch, kernel, tiles);
  for (const samples::PrologueExtents &extents :
       {samples::PrologueExtents{.b = 8, .j = 512, .i = 1024, .u = 3072},
        {.b = 8, .j = 512, .i = 1024, .u = 64},
        {.b = 1, .j = 304, .i = 1024, .u = 1000}})
    addOrientations(batch, "normalized", samples::normalizedProjection(extents, DType::bf16), seen);
  for (const Kernel &kernel : samples::transformedContractions(odd, DType::bf16))
    batch.addSamples(kernel.name, kernel, findDevice("h200"), 4);
  CHECK(tiles.size() >= 5);
  batch.buildAndCheck(100, 1);
}

TEST_CASE(
    "products that are scaled in the place of an operand, on sm_90a: every tile, results in both "
    "orders") {
  Batch batch;
  std::set<std::string> tiles;
  const samples::PrologueExtents several[] = {{.b = 8, .h = 16, .j = 512, .k = 512, .p = 64},
                                              {.b = 2, .h = 3, .j = 1000, .k = 200, .p = 264}};
  size_t scaled = 0;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::PrologueExtents &extents : several)
      for (const Kernel &kernel : samples::scaledKTiles(extents, dtype))
        scaled += addEachTile(batch, kernel, tiles);
  CHECK(tiles.size() >= 4);
  CHECK(scaled >= 60);
  batch.buildAndCheck(scaled + 20, 1);
}

TEST_CASE("contractions of sm_90a that start early read and write nothing before they wait") {
  nvrtctest::EarlyBatch batch;
  for (const Kernel &kernel : test::nonEmpty(
           samples::singleConsumerEpilogues({.b = 1, .j = 8, .i = 1024, .u = 1024}, DType::f16))) {
    std::set<Sm90Schedule> seen;
    forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &one) {
      const auto *knobs = one.knobs.getIf<Sm90GemmKnobs>();
      if (knobs && seen.insert(knobs->schedule).second) batch.add(kernel.name, kernel, one);
      return true;
    });
    CHECK(seen.contains(Sm90Schedule::singleConsumer));
    CHECK(seen.size() > 1);
  }
  batch.buildAndCheck();
}
