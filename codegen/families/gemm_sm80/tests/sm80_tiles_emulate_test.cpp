// Contractions of warps with epilogues in every tile of the family, on extents that cut it on both
// sides: sums, masks and operands of every warp and block of it lie where they belong.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "kernel/Device.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleTf32.h"

#include <fmt/format.h>

#include <set>

using namespace weft;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted;
};

/// What the family tries for products of any shape.
std::set<Knobs> tiles(DType type) {
  std::set<Knobs> found;
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{4096, 4096},
                             {1024, 3072},
                             {304, 1000},
                             {8, 4096},
                             {24, 24},
                             {4096, 64},
                             {512, 3072}}) {
    const Kernel sample = samples::gemmBias({.b = 1, .j = m, .i = 1024, .u = n}, type),
                 kernel = type == DType::f32 ? samples::inTf32(sample) : sample;
    forEachConfiguration(kernel, findDevice("a100"), {}, [&](const Configuration &one) {
      if (one.knobs.is<Sm80GemmKnobs>()) found.insert(one.knobs);
      return true;
    });
  }
  return found;
}

void checkAll(const std::string &library, const std::vector<Subject> &subjects) {
  std::vector<emulate::Source> sources;
  for (const Subject &subject : subjects)
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  const emulate::HostLibrary built(library, sources);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const auto &[kernel, configuration, emitted] = subjects[i];
    INFO(kernel.name << ", " << describe(kernel, configuration.knobs) << "\n" << emitted.readable);
    emulate::checkEmitted(kernel, configuration, emitted, built.kernel(i), emitted.launch.grid,
                          emitted.launch.block);
  }
}

}  // namespace

TEST_CASE("every tile finishes its sums as the ops say, results in both orders") {
  std::vector<Subject> subjects;
  std::set<std::string> seen;
  for (const DType type : {DType::f16, DType::f32})
    for (const samples::ContractionExtents &extents :
         {samples::ContractionExtents{.b = 3, .j = 50, .i = 16, .u = 331},
          {.b = 2, .j = 80, .i = 8, .u = 264}})
      for (const Kernel &sample : {samples::gemmBiasGelu(extents, type, true),
                                   samples::gemmBiasDropoutResidual(extents, type),
                                   samples::gemmScaleRowsGate(extents, type)}) {
        const Kernel kernel = type == DType::f32 ? samples::inTf32(sample) : sample;
        for (const Knobs &tile : tiles(type)) {
          const std::vector<LayoutTuple> tuples = contractionTuples(kernel);
          for (const bool isSwapped : {false, true})
            for (size_t n = 0; n < tuples.size(); ++n) {
              const Configuration configuration =
                  toConfiguration(kernel, tuples[(n + 5 * subjects.size()) % tuples.size()], tile);
              const auto gemm = mmaSyncProblem(kernel, configuration);
              if (!gemm || gemm->isSwapped != isSwapped) continue;
              seen.insert(fmt::format("{} {}", nameOf(type), describe(kernel, tile)));
              subjects.push_back(
                  {kernel, configuration, codegen::emit(kernel, configuration, "sm_80")});
              break;
            }
        }
      }
  CHECK(seen.size() == 8 + 6);  // of halves, of tf32
  checkAll("sm80_tiles", subjects);
}

TEST_CASE("every tile that holds whole sub-vectors ends with a local softmax") {
  const samples::ScoreExtents several[] = {
      {.b = 2, .h = 2, .j = 72, .k = 200, .p = 16},
      {.b = 1, .h = 3, .j = 20, .k = 136, .p = 8, .length = 32},
      {.b = 1, .h = 1, .j = 130, .k = 89, .p = 8, .length = 16}};
  std::vector<Subject> subjects;
  std::set<std::pair<std::string, int64_t>> seen;
  for (const samples::ScoreExtents &extents : several)
    for (const Kernel &kernel :
         samples::localSoftmaxes(extents, extents.length == 32 ? DType::bf16 : DType::f16))
      for (const Knobs &tile : tiles(DType::f16)) {
        const ContractionRegion region = contractionRegion(kernel).value();
        if (!sm80SoftmaxRejection(tile.get<Sm80GemmKnobs>(), region).empty()) continue;
        const std::vector<LayoutTuple> tuples = contractionTuples(kernel);
        for (size_t n = 0; n < tuples.size(); ++n) {
          const Configuration configuration =
              toConfiguration(kernel, tuples[(n + 5 * subjects.size()) % tuples.size()], tile);
          const auto gemm = mmaSyncProblem(kernel, configuration);
          if (!gemm || !softmaxRejection(kernel, configuration, region, !gemm->isSwapped).empty())
            continue;
          seen.emplace(describe(kernel, tile), extents.length);
          subjects.push_back(
              {kernel, configuration, codegen::emit(kernel, configuration, "sm_80")});
          break;
        }
      }
  CHECK(seen.size() == 4 + 8 + 8);  // of 64, 32 and 16 columns a warp
  checkAll("sm80_softmax", subjects);
}
