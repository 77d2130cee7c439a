// Whole kernels of gemm-sm90 on the host, down to the PTX of their main loops: TMA or threads bring
// k-tiles, WGMMA multiplies them. Every orientation of the operands, schedules, several tiles a
// block, epilogues that read by TMA. Compared with single elements in fp64. Epilogues at large:
// sm90_epilogue_emulate_test.cpp.
#include "codegen/Emit.h"
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/Device.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTf32.h"

#include <fmt/format.h>

#include <set>

using namespace weft;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted = {};
};

/// Of every orientation of operands and result one tile, the first `most`.
void add(const Kernel &kernel, std::span<const Sm90GemmKnobs> tiles, std::vector<Subject> &subjects,
         size_t most = 8) {
  std::set<std::string> seen;
  for (const LayoutTuple &tuple : contractionTuples(kernel)) {
    if (seen.size() == most) return;
    Subject subject{
        .kernel = kernel,
        .configuration = toConfiguration(kernel, tuple, tiles[seen.size() % tiles.size()])};
    const auto gemm = wgmmaProblem(kernel, subject.configuration);
    if (!gemm || !sm90Rejection(kernel, subject.configuration,
                                subject.configuration.knobs.get<Sm90GemmKnobs>(),
                                findDevice("h200").sharedMemoryPerBlock)
                      .empty())
      continue;
    if (!seen.insert(fmt::format("{}{}{}", gemm->isSwapped, gemm->a.isAlongK(), gemm->b.isAlongK()))
             .second)
      continue;
    subject.emitted = codegen::emit(kernel, subject.configuration, "sm_90a");
    subjects.push_back(std::move(subject));
  }
}

void checkAll(const std::string &name, const std::vector<Subject> &subjects) {
  std::vector<emulate::Source> sources;
  for (const Subject &subject : subjects)
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  const emulate::HostLibrary built(name, sources, emulate::DeviceHeaders::translated);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject &subject = subjects[i];
    INFO(subject.kernel.name << ", " << describe(subject.kernel, subject.configuration.knobs)
                             << "\n"
                             << subject.emitted.readable);
    emulate::checkEmitted(subject.kernel, subject.configuration, subject.emitted, built.kernel(i),
                          subject.emitted.launch.grid, subject.emitted.launch.block);
  }
}

using enum Sm90Schedule;
constexpr Sm90GemmKnobs tiles[] = {
    {.schedule = pingPong, .tileM = 64, .tileN = 64, .stages = 2, .epilogueStages = 2, .blocks = 2},
    {.schedule = cooperative, .tileM = 128, .tileN = 64, .stages = 3, .blocks = 1},
    {.schedule = cooperative,
     .tileM = 256,
     .tileN = 128,
     .stages = 2,
     .epilogueStages = 1,
     .blocks = 1},
    {.schedule = pingPong,
     .tileM = 128,
     .tileN = 192,
     .stages = 2,
     .epilogueStages = 4,
     .blocks = 1}};

}  // namespace

TEST_CASE("k-tiles that TMA brings, of every orientation") {
  std::vector<Subject> subjects;
  const samples::ContractionExtents extents{.b = 2, .j = 136, .i = 200, .u = 72};
  add(samples::gemmBias(extents, DType::f16), tiles, subjects);
  CHECK(subjects.size() == 8);
  add(samples::gemmBiasDropoutResidual(extents, DType::bf16), std::span(tiles).subspan(1, 2),
      subjects);
  checkAll("sm90_main_loop_tma", subjects);
}

TEST_CASE("k-tiles that threads bring, of rows that start anywhere") {
  std::vector<Subject> subjects;
  add(samples::gemmBias({.b = 2, .j = 75, .i = 77, .u = 69}, DType::f16), tiles, subjects);
  CHECK(subjects.size() == 7);
  checkAll("sm90_main_loop_threads", subjects);
}

TEST_CASE("products of 8-bit floats and of tf32") {
  std::vector<Subject> subjects;
  const samples::Float8Extents extents{.b = 2, .m = 136, .n = 80, .k = 208};
  for (const GemmTypes &types : samples::float8Types)
    add(samples::float8Gemm(extents, types), std::span(tiles).first(2), subjects);
  add(samples::tf32Gemm(extents), std::span(tiles).first(2), subjects);
  CHECK(subjects.size() >= 6);
  checkAll("sm90_main_loop_types", subjects);
}

TEST_CASE("operands that are scaled or transformed on load") {
  std::vector<Subject> subjects;
  for (const Kernel &kernel : test::nonEmpty(
           samples::scaledKTiles({.b = 1, .h = 2, .j = 72, .k = 200, .p = 64}, DType::f16)))
    add(kernel, std::span(tiles).first(2), subjects, 2);
  const samples::PrologueExtents extents{
      .b = 1, .h = 2, .j = 9, .k = 72, .i = 136, .p = 16, .u = 72};
  for (const Kernel &kernel : samples::transformedContractions(extents, DType::bf16))
    add(kernel, std::span(tiles).first(1), subjects, 2);
  CHECK(subjects.size() > 12);
  checkAll("sm90_main_loop_prologues", subjects);
}

TEST_CASE("single-consumer tiles") {
  std::vector<Subject> subjects;
  for (const bool isAlongM : {false, true})
    for (const int width : {8, 24, 48}) {
      const int side = width > 32 ? 64 : 32;
      const Sm90GemmKnobs tile{.schedule = singleConsumer,
                               .tileM = isAlongM ? side : width,
                               .tileN = isAlongM ? width : side,
                               .stages = 4};
      add(samples::gemmBias({.b = 2, .j = 30, .i = 328, .u = 72}, DType::f16), std::span(&tile, 1),
          subjects);
    }
  CHECK(subjects.size() > 6);
  checkAll("sm90_main_loop_single_consumer", subjects);
}

TEST_CASE("stream-K: the last-arriving block adds what others have multiplied") {
  std::vector<Subject> subjects;
  const Sm90GemmKnobs tile{.schedule = cooperative,
                           .tileM = 128,
                           .tileN = 128,
                           .stages = 2,
                           .epilogueStages = 2,
                           .groupM = 2,
                           .blocks = 4,
                           .streamK = 1};
  for (const auto &[b, m, n, k] : {std::array<int64_t, 4>{1, 300, 200, 264}, {3, 130, 72, 320}}) {
    const Kernel kernel =
        samples::contractKernel({{'b', b}, {'k', k}, {'m', m}, {'n', n}}, "bmk", "bnk", "bmn");
    Subject subject{.kernel = kernel, .configuration = samples::stridedConfiguration(kernel, tile)};
    subject.emitted = codegen::emit(kernel, subject.configuration, "sm_90a");
    subjects.push_back(std::move(subject));
  }
  checkAll("sm90_main_loop_stream_k", subjects);
}
