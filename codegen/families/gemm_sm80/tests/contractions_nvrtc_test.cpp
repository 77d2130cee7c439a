// Every kind of contraction by mma.sync compiles for its targets without spills and warnings
// (design rule 4): every tile, in orientations and with what stands around the GEMM.
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleTf32.h"
#include "tests/unit/samples/SampleTokens.h"

using namespace weft;
using nvrtctest::architectures;
using nvrtctest::Batch;

namespace {

/// One configuration for every tile from sm_80 on and each order of the result, each in an
/// orientation of the separate operands; `tiles` gains what they are.
void addEachWarpTile(Batch &batch, const std::string &name, const Kernel &kernel,
                     std::set<std::string> &tiles) {
  std::map<std::string, std::vector<Configuration>> found;
  std::set<std::string> seen;
  forEachConfiguration(kernel, findDevice("a100"), {}, [&](const Configuration &configuration) {
    if (!configuration.knobs.is<Sm80GemmKnobs>()) return true;
    const GemmProblem gemm = *mmaSyncProblem(kernel, configuration);
    const std::string tile = describe(kernel, configuration.knobs),
                      key = fmt::format("{} {}", tile, gemm.isSwapped);
    if (seen.insert(fmt::format("{} {}{}", key, gemm.a.isAlongK(), gemm.b.isAlongK())).second)
      found[key].push_back(configuration);
    tiles.insert(tile);
    return true;
  });
  static size_t turn = 0;
  for (const auto &[key, orientations] : found) {
    batch.add(name, kernel, orientations[turn % orientations.size()],
              architectures[turn / 2 % architectures.size()]);
    ++turn;
  }
}

}  // namespace

TEST_CASE(
    "tensor-core contractions from sm_80 on: every tile in every orientation for every target") {
  Batch batch;
  std::set<std::string> seen;
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{4096, 4096, 1024},
                                {1024, 3072, 1024},
                                {304, 1000, 1024},
                                {8, 4096, 1024},
                                {24, 24, 64},
                                {4096, 64, 1024},
                                {1001, 777, 555}})
    for (const DType dtype : {DType::f16, DType::bf16}) {
      Kernel kernel = samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in");
      for (Value &value : kernel.values) value.dtype = dtype;
      forEachConfiguration(kernel, findDevice("a100"), {}, [&](const Configuration &configuration) {
        if (!configuration.knobs.is<Sm80GemmKnobs>()) return true;
        const GemmProblem gemm = *mmaSyncProblem(kernel, configuration);
        const std::string text =
            fmt::format("{} {}{} {}", describe(kernel, configuration.knobs), gemm.a.isAlongK(),
                        gemm.b.isAlongK(), gemm.a.usesTma && gemm.b.usesTma);
        // All targets in turn; one tile of every orientation for all of them would take long.
        if (seen.insert(text).second)
          batch.add("gemm", kernel, configuration,
                    architectures[seen.size() % architectures.size()]);
        return true;
      });
    }
  batch.buildAndCheck(8 * 4);
}

TEST_CASE("products of tf32 from sm_80 on: every tile in every orientation for every target") {
  Batch batch;
  std::set<std::string> seen;
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{4096, 4096, 1024},
                                {1024, 3072, 1024},
                                {304, 1000, 1024},
                                {8, 4096, 1024},
                                {24, 24, 64},
                                {4096, 64, 1024},
                                {1001, 777, 555}}) {
    Kernel kernel =
        samples::inTf32(samples::contractKernel({{'i', m}, {'k', k}, {'n', n}}, "ik", "kn", "in"));
    for (Value &value : kernel.values) value.dtype = DType::f32;
    forEachConfiguration(kernel, findDevice("a100"), {}, [&](const Configuration &configuration) {
      if (!configuration.knobs.is<Sm80GemmKnobs>()) return true;
      const GemmProblem gemm = *mmaSyncProblem(kernel, configuration);
      const std::string text =
          fmt::format("{} {}{} {}{}", describe(kernel, configuration.knobs), gemm.a.isAlongK(),
                      gemm.b.isAlongK(), gemm.a.usesTma, gemm.b.usesTma);
      if (seen.insert(text).second)
        batch.add("warps", kernel, configuration,
                  architectures[seen.size() % architectures.size()]);
      return true;
    });
  }
  CHECK(seen.size() >= 6 * 4);
  batch.buildAndCheck(6 * 4, 3);
}

TEST_CASE("tensor-core contractions from sm_80 on that leave out tiles behind the last token") {
  Batch batch;
  std::set<std::string> seen;
  for (const bool addsRest : {false, true})
    addEachWarpTile(batch, "tokens",
                    samples::gemmOfTokens({.t = 4096, .i = 1024, .u = 3072, .sequences = 8},
                                          DType::f16, addsRest, !addsRest),
                    seen);
  batch.buildAndCheck(12);
}

TEST_CASE("contractions from sm_80 on that leave out tiles of scores which a block mask hides") {
  Batch batch;
  std::set<std::string> seen;
  for (const bool hasSoftmax : {false, true})
    addEachWarpTile(batch, "blocks",
                    samples::scoresInBlocks({.b = 1, .h = 16, .j = 1000, .k = 1000}, DType::f16,
                                            "bigbird(block=64,seed=0)", hasSoftmax),
                    seen);
  batch.buildAndCheck(10);
}

namespace {

/// As many tensors as an epilogue takes beside 128 accumulators a thread, and a mask.
Kernel mostRegisters(const samples::ContractionExtents &extents) {
  samples::FusedContraction fused("most_registers", extents, DType::f16);
  const int bias = fused.input("bias", "u"), rest = fused.input("rest", "bju"),
            gate = fused.input("gate", "bju"), other = fused.input("other", "bju");
  const int kept = fused.dropout(fused.bias(fused.gemm(0.5), bias)),
            sum = fused.map("residual", "{0} + {1}", {kept, rest}, "sum");
  const int gated = fused.map("mul", "{0} * {1}", {sum, gate}, "gated");
  return fused.build({fused.map("add", "{0} + {1}", {gated, other}, "end"), sum, gated});
}

}  // namespace

TEST_CASE(
    "tensor-core contractions from sm_80 on with epilogues: every tile, results in both orders, "
    "rows that start anywhere, tf32") {
  Batch batch;
  std::set<std::string> tiles, odd, tf32;
  const samples::ContractionExtents large{.b = 8, .j = 512, .i = 1024, .u = 3072},
      small{.b = 1, .j = 304, .i = 1024, .u = 1000}, tall{.b = 8, .j = 512, .i = 64, .u = 64},
      few{.b = 1, .j = 8, .i = 1024, .u = 4096}, anywhere{.b = 3, .j = 331, .i = 555, .u = 777};
  for (const samples::ContractionExtents &extents : {large, small, tall, few})
    for (const Kernel &kernel : samples::fusedContractions(extents, DType::f16))
      addEachWarpTile(batch, kernel.name, kernel, tiles);
  for (const samples::ContractionExtents &extents : {large, anywhere})
    addEachWarpTile(batch, "most registers", mostRegisters(extents),
                    extents.j == 331 ? odd : tiles);
  for (const Kernel &kernel : samples::fusedContractions(anywhere, DType::bf16))
    addEachWarpTile(batch, kernel.name + " anywhere", kernel, odd);
  for (const samples::ContractionExtents &extents : {large, anywhere})
    for (const Kernel &kernel : samples::coordinateContractions(extents, DType::f16))
      addEachWarpTile(batch, kernel.name, kernel, extents.j == 331 ? odd : tiles);
  for (const Kernel &kernel : samples::fusedContractions(large, DType::f32))
    addEachWarpTile(batch, kernel.name + " tf32", samples::inTf32(kernel), tf32);
  CHECK(tiles.size() >= 7);
  CHECK(odd.size() >= 3);
  CHECK(tf32.size() >= 2);
  batch.buildAndCheck(200);
}

TEST_CASE(
    "tensor-core contractions from sm_80 on that end with a local softmax: every tile, sub-vectors "
    "of every length, results in both orders") {
  Batch batch;
  std::set<std::string> tiles;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::ScoreExtents &extents :
         {samples::ScoreExtents{
              .b = 8, .h = 16, .j = 512, .k = 512, .length = dtype == DType::f16 ? 64 : 16},
          {.b = 2, .h = 3, .j = 77, .k = 203, .length = 32}})
      for (const Kernel &kernel : samples::localSoftmaxes(extents, dtype))
        addEachWarpTile(batch, kernel.name, kernel, tiles);
  CHECK(tiles.size() >= 4);
  batch.buildAndCheck(80);
}

TEST_CASE("operands that are transformed on load, from sm_80 on") {
  Batch batch;
  const samples::PrologueExtents large{
      .b = 8, .h = 16, .j = 512, .k = 512, .i = 1024, .p = 64, .u = 3072},
      odd{.b = 3, .h = 2, .j = 50, .k = 203, .i = 203, .p = 40, .u = 331};
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const samples::PrologueExtents &extents : {large, odd})
      for (const Kernel &kernel : samples::transformedContractions(extents, dtype))
        batch.addSamples(kernel.name, kernel, findDevice("a100"), 6);
  batch.buildAndCheck(100);
}
