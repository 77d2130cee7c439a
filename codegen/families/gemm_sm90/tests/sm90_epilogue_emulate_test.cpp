// Whole kernels of sm_90a on the host, whose epilogue store is emulated behind sums of plain
// loops (host/sm90_gemm.cuh and its siblings): what follows a GEMM, single-consumer tiles,
// several strides, tiles that blocks share, operands that are transformed on load. Compared with
// single elements in fp64.
#include "codegen/Emit.h"
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/ContractionPrologue.h"
#include "kernel/Device.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleRotary.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleStrides.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

using namespace weft;
using weft::test::nonEmpty;
using namespace weft::codegen;

namespace {

/// An emitted kernel of sm_90a.
struct Sm90Subject {
  Kernel kernel;
  Configuration configuration;
  EmittedKernel emitted = {};

  const Sm90GemmKnobs &tile() const { return configuration.knobs.get<Sm90GemmKnobs>(); }
};

/// As consumers alone, in two launches.
void checkSm90(const Sm90Subject &subject, const emulate::HostKernel &host, int64_t blocks) {
  const bool isSingleConsumer = subject.tile().schedule == Sm90Schedule::singleConsumer;
  const int64_t threads = isSingleConsumer ? sm90Threads(subject.tile())
                          : subject.tile().schedule == Sm90Schedule::pingPong ? 128
                                                                              : 256;
  const std::array<int64_t, 3> grid{isSingleConsumer         ? subject.emitted.launch.grid[0]
                                    : subject.tile().streamK ? subject.tile().blocks
                                                             : blocks,
                                    1, 1};
  emulate::checkEmitted(subject.kernel, subject.configuration, subject.emitted, host, grid,
                        {threads, 1, 1});
}

/// All of them, built at once.
void checkAll(const std::string &library, const std::vector<Sm90Subject> &subjects,
              int64_t blocks = 3) {
  std::vector<emulate::Source> sources;
  for (const Sm90Subject &subject : subjects)
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  const emulate::HostLibrary built(library, sources);
  for (size_t i = 0; i < subjects.size(); ++i) {
    INFO(subjects[i].kernel.name << ", "
                                 << describe(subjects[i].kernel, subjects[i].configuration.knobs)
                                 << "\n"
                                 << subjects[i].emitted.readable);
    checkSm90(subjects[i], built.kernel(i), blocks);
  }
}

/// Both orientations of the result with every tile that the kernel takes.
void addSm90(const Kernel &kernel, std::span<const Sm90GemmKnobs> tiles,
             std::vector<Sm90Subject> &subjects) {
  std::set<std::string> seen;
  for (const LayoutTuple &tuple : contractionTuples(kernel))
    for (const Sm90GemmKnobs &tile : tiles) {
      Sm90Subject subject{.kernel = kernel, .configuration = toConfiguration(kernel, tuple, tile)};
      const auto gemm = wgmmaProblem(kernel, subject.configuration);
      if (!gemm || !sm90Rejection(kernel, subject.configuration, tile,
                                  findDevice("h200").sharedMemoryPerBlock)
                        .empty())
        continue;
      if (!seen.insert(fmt::format("{} {}", describe(kernel, tile), gemm->isSwapped)).second)
        continue;
      subject.emitted = emit(kernel, subject.configuration, "sm_90a");
      subjects.push_back(std::move(subject));
    }
}

/// Of every orientation of operands and result one tile, one after the other.
void addTransformed(const Kernel &kernel, std::span<const Sm90GemmKnobs> tiles,
                    std::vector<Sm90Subject> &subjects) {
  std::set<std::string> seen;
  for (const LayoutTuple &tuple : contractionTuples(kernel)) {
    Sm90Subject subject{
        .kernel = kernel,
        .configuration = toConfiguration(kernel, tuple, tiles[seen.size() % tiles.size()])};
    const auto gemm = wgmmaProblem(kernel, subject.configuration);
    if (!gemm || !sm90Rejection(kernel, subject.configuration, subject.tile(),
                                findDevice("h200").sharedMemoryPerBlock)
                      .empty())
      continue;
    if (!seen.insert(fmt::format("{}{}{}", gemm->isSwapped, gemm->a.isAlongK(), gemm->b.isAlongK()))
             .second)
      continue;
    subject.emitted = emit(kernel, subject.configuration, "sm_90a");
    subjects.push_back(std::move(subject));
  }
}

}  // namespace

TEST_CASE(
    "kernels of sm_90a leave registers as their ops say: panels, vectors, second outputs, and sums "
    "by rows and columns") {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {
      {.schedule = pingPong,
       .tileM = 128,
       .tileN = 128,
       .stages = 2,
       .epilogueStages = 4,
       .groupM = 2},
      {.schedule = pingPong,
       .tileM = 64,
       .tileN = 192,
       .stages = 2,
       .epilogueStages = 2,
       .groupM = 1},
      {.schedule = cooperative, .tileM = 128, .tileN = 256, .stages = 2, .epilogueStages = 3},
      {.schedule = cooperative,
       .tileM = 256,
       .tileN = 64,
       .stages = 2,
       .epilogueStages = 1,
       .groupM = 1}};
  const samples::ContractionExtents several[] = {{.b = 3, .j = 50, .i = 16, .u = 331},
                                                 {.b = 2, .j = 128, .i = 8, .u = 264},
                                                 {.b = 1, .j = 9, .i = 24, .u = 40}};
  std::vector<Sm90Subject> subjects;
  for (const samples::ContractionExtents &extents : several) {
    for (const Kernel &kernel : samples::fusedReductions(extents, DType::f16))
      addSm90(kernel, tiles, subjects);
    addSm90(samples::gemmBiasGelu(extents, DType::bf16, true), std::span(tiles).first(1), subjects);
    addSm90(samples::gemmBiasDropoutResidual(extents, DType::f16), std::span(tiles).first(1),
            subjects);
    for (const Kernel &kernel : samples::coordinateContractions(extents, DType::f16))
      addSm90(kernel, std::span(tiles).subspan(1, 2), subjects);
  }
  CHECK(subjects.size() > 80);
  checkAll("sm90_epilogue", subjects);
}

/// Halves and neighbours, both ways, of all heads and of some, of whole heads and of their first
/// elements; widths of one subtile, of parts of it and of several; positions of sequences that
/// start anywhere, and of packed tokens.
TEST_CASE("kernels of sm_90a turn heads by a rotary embedding before their epilogues") {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {
      {.schedule = pingPong, .tileM = 64, .tileN = 64, .stages = 2, .epilogueStages = 1},
      {.schedule = pingPong, .tileM = 64, .tileN = 192, .stages = 2, .epilogueStages = 2},
      {.schedule = pingPong, .tileM = 128, .tileN = 128, .stages = 2, .epilogueStages = 2},
      {.schedule = cooperative, .tileM = 128, .tileN = 256, .stages = 2, .epilogueStages = 2}};
  const samples::RotaryExtents wide{.b = 2, .j = 40, .g = 3, .p = 128, .i = 16},
      usual{.b = 3, .j = 50, .g = 5, .p = 64, .i = 16},
      narrow{.b = 1, .j = 9, .g = 7, .p = 32, .i = 16},
      odd{.b = 2, .j = 33, .g = 3, .p = 96, .i = 8};
  std::vector<Sm90Subject> subjects;
  const auto add = [&](const samples::RotaryExtents &extents, DType type,
                       const samples::RotaryForm &form) {
    const size_t before = subjects.size();
    addSm90(samples::rotatedProjection(extents, type, form), tiles, subjects);
    INFO(extents.p);
    CHECK(subjects.size() > before);
  };
  for (const samples::RotaryExtents &extents : {wide, usual, narrow, odd})
    for (const bool isHalved : {true, false}) {
      add(extents, DType::f16, {.isHalved = isHalved});
      add(extents, DType::bf16, {.isHalved = isHalved, .isReverse = true, .end = 2});
    }
  add(usual, DType::f16, {.begin = 1, .end = 4, .hasStarts = true, .hasResidual = true});
  add(usual, DType::f16, {.turned = 32, .factor = 4, .isStretched = true});
  add(wide, DType::bf16, {.isHalved = false, .turned = 40, .hasResidual = true, .factor = 2});
  for (const samples::RotaryExtents &extents : {wide, usual})
    addSm90(samples::rotatedTokens(extents, DType::f16, {.end = 2}), tiles, subjects);
  CHECK(subjects.size() > 30);
  checkAll("sm90_rotary", subjects);
}

/// Sub-vectors of every length, whole and short, seen and not; rows that start at multiples of 16
/// bytes and anywhere.
TEST_CASE("kernels of sm_90a end with a local softmax") {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {
      {.schedule = pingPong,
       .tileM = 128,
       .tileN = 128,
       .stages = 2,
       .epilogueStages = 4,
       .groupM = 2},
      {.schedule = pingPong,
       .tileM = 64,
       .tileN = 192,
       .stages = 2,
       .epilogueStages = 2,
       .groupM = 1},
      {.schedule = cooperative, .tileM = 128, .tileN = 256, .stages = 2, .epilogueStages = 3}};
  const samples::ScoreExtents several[] = {
      {.b = 2, .h = 2, .j = 72, .k = 200, .p = 16},
      {.b = 1, .h = 3, .j = 20, .k = 136, .p = 8, .length = 32},
      {.b = 1, .h = 1, .j = 130, .k = 89, .p = 8, .length = 16},
      {.b = 2, .h = 1, .j = 9, .k = 40, .p = 8},
      {.b = 2, .h = 3, .j = 1, .k = 200, .p = 8}};
  std::vector<Sm90Subject> subjects;
  for (const samples::ScoreExtents &extents : several)
    for (const Kernel &kernel :
         samples::localSoftmaxes(extents, extents.length == 32 ? DType::bf16 : DType::f16))
      addSm90(kernel, tiles, subjects);
  CHECK(subjects.size() == 5 * 9 * 3);
  // Operands with several strides along the batch, which have its axes in another order than the
  // result.
  const Kernel kernel =
      samples::scoresLocalSoftmax({.b = 2, .h = 3, .j = 64, .k = 128, .p = 64}, DType::f16);
  std::set<std::pair<std::vector<int>, std::vector<int>>> orders;
  size_t exchanged = 0;
  for (const LayoutTuple &tuple : severalStridesTuples(kernel)) {
    Sm90Subject subject{
        .kernel = kernel,
        .configuration = toConfiguration(kernel, tuple, tiles[orders.size() % std::size(tiles)])};
    const auto gemm = wgmmaProblem(kernel, subject.configuration);
    const std::pair order{tuple[0].order, tuple[2].order};
    if (orders.size() == 12 || !gemm || !gemm->a.hasSeveralStrides() || orders.contains(order) ||
        !sm90Rejection(kernel, subject.configuration, subject.tile(),
                       findDevice("h200").sharedMemoryPerBlock)
             .empty())
      continue;
    orders.insert(order);
    const auto isHeadFirst = [](const std::vector<int> &axes, int h, int b) {
      return std::ranges::find(axes, h) < std::ranges::find(axes, b);
    };
    exchanged += isHeadFirst(tuple[0].order, 1, 2) != isHeadFirst(tuple[2].order, 0, 1) ? 1 : 0;
    subject.emitted = emit(kernel, subject.configuration, "sm_90a");
    subjects.push_back(std::move(subject));
  }
  CHECK(orders.size() >= 4);
  CHECK(exchanged > 0);
  std::set<bool> orientations;
  for (const Sm90Subject &subject : subjects) {
    orientations.insert(wgmmaProblem(subject.kernel, subject.configuration)->isSwapped);
  }
  CHECK(orientations.size() == 2);
  checkAll("sm90_softmax", subjects);
}

/// Rows that end inside of a tile, runs of one slice and of two, short last ones; factors of rows
/// that no tile has are not read.
TEST_CASE("kernels of sm_90a scale the sums of products in the place of an operand") {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {{.schedule = pingPong,
                                      .tileM = 64,
                                      .tileN = 128,
                                      .stages = 2,
                                      .epilogueStages = 4,
                                      .groupM = 2},
                                     {.schedule = cooperative,
                                      .tileM = 128,
                                      .tileN = 64,
                                      .stages = 2,
                                      .epilogueStages = 2,
                                      .groupM = 1}};
  const samples::PrologueExtents several[] = {{.b = 2, .h = 2, .j = 72, .k = 200, .p = 64},
                                              {.b = 1, .h = 3, .j = 20, .k = 328, .p = 40}};
  std::vector<Sm90Subject> subjects;
  for (const samples::PrologueExtents &extents : several) {
    // One of each order of the factors and side of C; the others differ in where v lies alone.
    std::set<std::string> seen;
    for (const DType type : {DType::f16, DType::bf16})
      for (const Kernel &kernel : nonEmpty(samples::scaledKTiles(extents, type)))
        for (const LayoutTuple &tuple : nonEmpty(contractionTuples(kernel))) {
          Sm90Subject subject{.kernel = kernel,
                              .configuration = toConfiguration(
                                  kernel, tuple, tiles[seen.size() % std::size(tiles)])};
          const auto gemm = wgmmaProblem(kernel, subject.configuration);
          if (!gemm || !gemm->isScaled()) continue;
          const int factors = contractionPrologue(kernel).value()->inputs.at(0).input;
          if (!seen.insert(fmt::format("{} {} {} {}", kernel.name, nameOf(type), gemm->isSwapped,
                                       fmt::join(tuple[size_t(factors)].order, "")))
                   .second)
            continue;
          subject.emitted = emit(kernel, subject.configuration, "sm_90a");
          subjects.push_back(std::move(subject));
        }
    CHECK(seen.size() >= 8);
  }
  checkAll("sm90_scaled", subjects);
}

/// Tiles of every width along either side of C, clipped and whole, C contiguous along either of its
/// axes, one block and four for the k of a tile, batch elements. Every tensor ends where memory
/// that may be read does.
TEST_CASE("single-consumer tiles of sm_90a read and store beside their sums what their ops say") {
  using enum Sm90Schedule;
  std::vector<Sm90GemmKnobs> tiles;
  for (int width = 8; width <= 48; width += 8)
    for (const bool isAlongM : {false, true}) {
      const int side = width % 16 == 0 || width > 32 ? 64 : 32;
      tiles.push_back({.schedule = singleConsumer,
                       .tileM = isAlongM ? side : width,
                       .tileN = isAlongM ? width : side,
                       .stages = 8,
                       .splitK = width == 16 ? 4 : 1});
    }
  const samples::ContractionExtents several[] = {{.b = 1, .j = 8, .i = 256, .u = 40},
                                                 {.b = 3, .j = 7, .i = 256, .u = 51},
                                                 {.b = 1, .j = 1, .i = 264, .u = 70},
                                                 {.b = 2, .j = 30, .i = 328, .u = 9}};
  std::vector<Sm90Subject> subjects;
  for (const samples::ContractionExtents &extents : several) {
    for (const Kernel &kernel :
         samples::singleConsumerEpilogues(extents, extents.b == 3 ? DType::bf16 : DType::f16))
      addSm90(kernel, tiles, subjects);
    Kernel scaled = samples::contractKernel(
        {{'k', extents.i}, {'m', extents.b * extents.j}, {'n', extents.u}}, "mk", "nk", "mn");
    scaled.body[0].attributes["scale"] = 0.125;
    addSm90(scaled, tiles, subjects);
  }
  std::set<std::pair<bool, bool>> orientations;
  for (const Sm90Subject &subject : subjects) {
    orientations.emplace(singleConsumerSides(subject.tile()).isAlongM,
                         wgmmaProblem(subject.kernel, subject.configuration)->isSwapped);
  }
  CHECK(subjects.size() > 200);
  CHECK(orientations.size() == 4);
  checkAll("sm90_single_consumer", subjects);
}

/// Copies of operands are emulated here: every element of a slice lies where products read it, and
/// where it is out of bounds zeros do.
TEST_CASE("kernels of sm_90a load and store tensors with several strides along a group of axes") {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {
      {.schedule = pingPong,
       .tileM = 128,
       .tileN = 128,
       .stages = 2,
       .epilogueStages = 2,
       .groupM = 2},
      {.schedule = cooperative,
       .tileM = 256,
       .tileN = 64,
       .stages = 2,
       .epilogueStages = 2,
       .groupM = 1},
      {.schedule = pingPong, .tileM = 64, .tileN = 192, .stages = 2, .epilogueStages = 2}};
  // Positions that a box of 64 rows holds several of, that hold several boxes, and that hold boxes
  // of 64 rows but not whole tiles.
  const std::map<char, int64_t> several[] = {
      {{'b', 3}, {'h', 2}, {'i', 72}, {'j', 32}, {'k', 40}, {'p', 64}, {'w', 2}},
      {{'b', 2}, {'h', 3}, {'i', 136}, {'j', 192}, {'k', 72}, {'p', 128}, {'w', 2}},
      {{'b', 5}, {'h', 1}, {'i', 200}, {'j', 16}, {'k', 128}, {'p', 64}, {'w', 4}}};
  std::vector<Sm90Subject> subjects;
  for (const auto &extents : several) {
    std::vector<Kernel> kernels = {samples::stridedProjection(extents)};
    for (const samples::StridedGemmCase &gemm : samples::stridedGemmCases)
      kernels.push_back(samples::stridedKernel(gemm, extents));
    for (const Kernel &kernel : kernels) {
      const Sm90GemmKnobs &tile = tiles[subjects.size() % std::size(tiles)];
      Sm90Subject subject{.kernel = kernel,
                          .configuration = samples::stridedConfiguration(kernel, tile)};
      INFO(nameOf(kernel.body[0].kind)
           << " " << std::get<std::string>(kernel.body[0].attributes.at("spec")));
      const bool mayMerge = extents.at('h') == 1;
      CHECK((mayMerge || wgmmaProblem(kernel, subject.configuration)->hasSeveralStrides()));
      subject.emitted = emit(kernel, subject.configuration, "sm_90a");
      subjects.push_back(std::move(subject));
    }
  }
  size_t strided = 0;
  for (const Sm90Subject &subject : subjects)
    strided += wgmmaProblem(subject.kernel, subject.configuration)->hasSeveralStrides() ? 1 : 0;
  checkAll("sm90_strides", subjects);
  CHECK(strided > subjects.size() / 2);
}

/// Runs of slices that end inside of tiles: one tile for all blocks, tiles that two or three blocks
/// share, blocks with whole tiles in between.
TEST_CASE("blocks of sm_90a that share tiles add the sums of all in one order, whoever is last") {
  using enum Sm90Schedule;
  struct Case {
    int64_t b, m, n, k;
    Sm90GemmKnobs tile;
  };
  const auto tile = [](int m, int n, int blocks) {
    return Sm90GemmKnobs{.schedule = cooperative,
                         .tileM = m,
                         .tileN = n,
                         .stages = 2,
                         .epilogueStages = 2,
                         .groupM = 2,
                         .blocks = blocks,
                         .streamK = 1};
  };
  const Case cases[] = {
      {1, 100, 120, 1000, tile(128, 128, 5)}, {1, 300, 200, 200, tile(128, 128, 5)},
      {1, 300, 200, 264, tile(128, 128, 4)},  {3, 130, 72, 320, tile(128, 128, 4)},
      {1, 520, 136, 136, tile(256, 64, 7)},   {1, 129, 260, 136, tile(128, 256, 3)},
      {2, 200, 331, 192, tile(128, 64, 11)}};
  std::vector<Sm90Subject> subjects;
  for (const Case &one : cases)
    for (const bool isScaled : {false, true}) {
      Kernel kernel =
          samples::contractKernel({{'b', one.b}, {'k', one.k}, {'m', one.m}, {'n', one.n}}, "bmk",
                                  "bnk", isScaled ? "bnm" : "bmn");
      if (isScaled) kernel.body[0].attributes["scale"] = 0.125;
      Sm90Subject subject{.kernel = kernel,
                          .configuration = samples::stridedConfiguration(kernel, one.tile)};
      if (!sm90Rejection(kernel, subject.configuration, one.tile,
                         findDevice("h200").sharedMemoryPerBlock)
               .empty())
        continue;
      subject.emitted = emit(kernel, subject.configuration, "sm_90a");
      CHECK(subject.emitted.launch.grid[0] == one.tile.blocks);
      subjects.push_back(std::move(subject));
    }
  CHECK(subjects.size() >= 11);
  checkAll("sm90_stream_k", subjects);
}

TEST_CASE("a consumer joins the sums of many tiles") {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {{.schedule = pingPong,
                                      .tileM = 64,
                                      .tileN = 64,
                                      .stages = 2,
                                      .epilogueStages = 2,
                                      .groupM = 3},
                                     {.schedule = cooperative,
                                      .tileM = 128,
                                      .tileN = 64,
                                      .stages = 2,
                                      .epilogueStages = 2,
                                      .groupM = 1}};
  std::vector<Sm90Subject> subjects;
  for (const Kernel &kernel :
       samples::fusedReductions({.b = 1, .j = 500, .i = 8, .u = 584}, DType::f16))
    for (const Sm90GemmKnobs &tile : tiles) {
      std::vector<Sm90Subject> all;
      addSm90(kernel, std::span(&tile, 1), all);
      if (!all.empty()) subjects.push_back(std::move(all.front()));
    }
  CHECK(subjects.size() > 5);
  for (const Sm90Subject &subject : nonEmpty(subjects))
    CHECK(sm90Tiles(wgmmaProblem(subject.kernel, subject.configuration).value(), subject.tile()) >
          32);
  checkAll("hopper_arrivals", subjects, 1);
}

TEST_CASE(
    "kernels of sm_90a transform operands on load: k-tiles of TMA in place, all others as threads "
    "copy them, with zeros beyond the end of k") {
  using enum Sm90Schedule;
  constexpr Sm90GemmKnobs tiles[] = {
      {.schedule = pingPong,
       .tileM = 64,
       .tileN = 64,
       .stages = 2,
       .epilogueStages = 2,
       .groupM = 2},
      {.schedule = cooperative, .tileM = 128, .tileN = 192, .stages = 2, .epilogueStages = 2},
      {.schedule = cooperative,
       .tileM = 256,
       .tileN = 64,
       .stages = 2,
       .epilogueStages = 1,
       .groupM = 1}};
  const samples::PrologueExtents several[] = {
      {.b = 2, .h = 1, .j = 40, .k = 72, .i = 72, .p = 16, .u = 72},
      {.b = 1, .h = 2, .j = 9, .k = 65, .i = 67, .p = 17, .u = 70}};
  std::vector<Sm90Subject> subjects;
  for (const samples::PrologueExtents &extents : several)
    for (const DType type : {DType::f16, DType::bf16})
      for (const Kernel &kernel : samples::transformedContractions(extents, type))
        addTransformed(kernel, tiles, subjects);
  size_t inPlace = 0;
  for (const Sm90Subject &subject : subjects) {
    inPlace += isTransformedInPlace(wgmmaProblem(subject.kernel, subject.configuration).value());
  }
  CHECK(inPlace > 30);
  CHECK(subjects.size() - inPlace > 60);
  checkAll("sm90_prologue", subjects);
}
