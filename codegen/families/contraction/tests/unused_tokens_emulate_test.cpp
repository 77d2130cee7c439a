// Contractions over packed tokens on the host, with no token, odd numbers of them, tiles that end
// with the last token, and all: rows of tokens are those of fp64, all others zero, or anything
// where nothing reads them, whichever side of the GEMM tokens lie along. Main loops of sm_90a run
// down to their PTX, so that whoever loads and whoever multiplies leave out the same tiles.
#include "codegen/Emit.h"
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/contraction/TokenTiles.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTokens.h"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <string>

using namespace weft;
using weft::test::nonEmpty;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted = {};
};

/// Tokens along rows and along columns of the kernel template's GEMM, with every tile that the
/// kernel takes.
void add(const Kernel &kernel, const std::vector<Knobs> &tiles, const std::string &target,
         std::vector<Subject> &subjects) {
  std::set<std::string> seen;
  for (const LayoutTuple &tuple : nonEmpty(contractionTuples(kernel)))
    for (const Knobs &tile : tiles) {
      Subject subject{.kernel = kernel, .configuration = toConfiguration(kernel, tuple, tile)};
      std::string side;
      try {
        subject.emitted = codegen::emit(kernel, subject.configuration, target);
      } catch (const Error &) {
        continue;
      }
      for (const char *name : {"RowTokens", "ColumnTokens"})
        if (subject.emitted.text.find(name) != std::string::npos) side = name;
      CHECK(!side.empty());
      if (seen.insert(fmt::format("{} {}", side, describe(kernel, tile))).second)
        subjects.push_back(std::move(subject));
    }
  CHECK(seen.size() == 2 * tiles.size());
}

/// What lies behind the last token in x is NaN: nothing of it may reach a result.
void checkCounts(const Subject &subject, const emulate::HostKernel &host,
                 std::span<const int64_t> counts, std::optional<int64_t> blocks = {}) {
  const size_t last = subject.kernel.inputs.size() - 1;
  for (const int64_t count : counts) {
    INFO(count << " tokens, " << describe(subject.kernel, subject.configuration.knobs) << "\n"
               << subject.emitted.readable);
    const auto fillRest = [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
      const emulate::Tensor &offsets = *tensors[last], &x = *tensors[1];
      for (int64_t n = 0; n < offsets.extents[0]; ++n)
        reference::storeElement(DType::i32, offsets.at(std::array{n}), double(n == 0 ? 0 : count));
      x.forEach([&](std::span<const int64_t> at) {
        if (at[0] >= count)
          reference::storeElement(x.type, x.at(at), std::numeric_limits<double>::quiet_NaN());
      });
    };
    std::array<int64_t, 3> grid = subject.emitted.launch.grid;
    if (blocks) grid[0] = *blocks;
    emulate::checkEmitted(subject.kernel, subject.configuration, subject.emitted, host, grid,
                          subject.emitted.launch.block, {}, fillRest);
  }
}

emulate::HostLibrary libraryOf(const std::string &name, const std::vector<Subject> &subjects,
                               emulate::DeviceHeaders headers = emulate::DeviceHeaders::standIns) {
  std::vector<emulate::Source> sources;
  for (const Subject &subject : subjects)
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  return {name, sources, headers};
}

using enum Sm90Schedule;

}  // namespace

TEST_CASE("tiles of sm_90a behind the last token are neither loaded nor multiplied") {
  const Sm90GemmKnobs tiles[] = {{.schedule = pingPong,
                                  .tileM = 64,
                                  .tileN = 64,
                                  .stages = 2,
                                  .epilogueStages = 2,
                                  .blocks = 2},
                                 {.schedule = cooperative,
                                  .tileM = 128,
                                  .tileN = 64,
                                  .stages = 3,
                                  .epilogueStages = 2,
                                  .blocks = 2}};
  const samples::TokenExtents extents{.t = 264, .i = 136, .u = 72, .sequences = 3};
  std::vector<Subject> subjects;
  add(samples::gemmOfTokens(extents, DType::f16, false), {tiles[0], tiles[1]}, "sm_90a", subjects);
  add(samples::gemmOfTokens(extents, DType::bf16, true, true), {tiles[0]}, "sm_90a", subjects);
  // Blocks count the tiles that have tokens where nothing reads the others, rows and columns.
  for (const bool addsRest : {true, false})
    add(samples::gemmOfTokens(extents, DType::f16, addsRest, false, true), {tiles[0], tiles[1]},
        "sm_90a", subjects);
  std::set<std::string> kinds;
  for (const Subject &subject : subjects)
    for (const char *kind : {"UnreadRowTokens", "CountedColumnTokens", "::RowTokens"})
      if (subject.emitted.text.find(kind) != std::string::npos) kinds.insert(kind);
  CHECK(kinds.size() == 3);
  const emulate::HostLibrary built =
      libraryOf("unused_tokens_sm90", subjects, emulate::DeviceHeaders::translated);
  constexpr int64_t counts[] = {0, 37, 128, 264};
  for (size_t i = 0; i < subjects.size(); ++i) checkCounts(subjects[i], built.kernel(i), counts);
}

TEST_CASE("blocks of warps behind the last token multiply nothing") {
  const Sm80GemmKnobs tiles[] = {
      {.tileM = 64, .tileN = 64, .tileK = 32, .stages = 3, .warpsM = 2, .warpsN = 2}};
  const samples::TokenExtents extents{.t = 136, .i = 72, .u = 72, .sequences = 3};
  std::vector<Subject> subjects;
  add(samples::gemmOfTokens(extents, DType::f16, true, true), {tiles[0]}, "sm_80", subjects);
  add(samples::gemmOfTokens(extents, DType::f16, false, false, true), {tiles[0]}, "sm_80",
      subjects);
  const emulate::HostLibrary built = libraryOf("unused_tokens_sm80", subjects);
  constexpr int64_t counts[] = {0, 37, 64, 136};
  for (size_t i = 0; i < subjects.size(); ++i) checkCounts(subjects[i], built.kernel(i), counts);
}

namespace {

/// Sums over packed tokens: zeros behind the last one, as whoever writes packed tokens writes them,
/// and from element `end(count)` on NaN, which a sum that has ended does not read.
template <typename End>
void checkSums(const Subject &subject, const emulate::HostKernel &host,
               std::span<const int64_t> counts, const End &end) {
  for (const int64_t count : counts) {
    INFO(count << " tokens, " << describe(subject.kernel, subject.configuration.knobs) << "\n"
               << subject.emitted.readable);
    const auto fillRest = [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
      const emulate::Tensor &offsets = *tensors[2];
      for (int64_t n = 0; n < offsets.extents[0]; ++n)
        reference::storeElement(DType::i32, offsets.at(std::array{n}), double(n == 0 ? 0 : count));
      for (const size_t operand : {0, 1})
        tensors[operand]->forEach([&](std::span<const int64_t> at) {
          if (at[0] >= count)
            reference::storeElement(
                tensors[operand]->type, tensors[operand]->at(at),
                at[0] < end(count) ? 0.0 : std::numeric_limits<double>::quiet_NaN());
        });
    };
    emulate::checkEmitted(subject.kernel, subject.configuration, subject.emitted, host,
                          subject.emitted.launch.grid, subject.emitted.launch.block, {}, fillRest);
  }
}

/// Of each tile; whether its text ends the sum.
std::vector<Subject> sumSubjects(const Kernel &kernel, std::span<const Knobs> tiles,
                                 const std::string &target, bool isEnding) {
  std::vector<Subject> subjects;
  for (const Knobs &tile : tiles) {
    Subject subject{.kernel = kernel, .configuration = samples::stridedConfiguration(kernel, tile)};
    subject.emitted = codegen::emit(kernel, subject.configuration, target);
    CHECK((subject.emitted.text.find("SummedTokens{") != std::string::npos) == isEnding);
    const auto endsSums = tile.family().endsSums;
    CHECK((endsSums && endsSums(kernel, tile)) == isEnding);
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

constexpr int64_t summedCounts[] = {0, 1, 64, 100, 320, 519, 520};
constexpr samples::TokenExtents summedExtents{.t = 520, .i = 200, .u = 136, .sequences = 3};

}  // namespace

TEST_CASE("sums over packed tokens end with the k-tile of the last one in tiles of sm_90a") {
  constexpr int64_t kTile = 64;
  std::vector<Knobs> tiles;
  // 13 are more than the k-tiles of 100 tokens, two in each of four tiles: some have none.
  for (const int blocks : {3, 7, 13})
    tiles.push_back(Sm90GemmKnobs{.schedule = cooperative,
                                  .tileM = 128,
                                  .tileN = 128,
                                  .stages = 2,
                                  .epilogueStages = 2,
                                  .blocks = blocks,
                                  .streamK = 1});
  // Whole tiles, several a block and one.
  for (const int blocks : {2, 3, 12})
    tiles.push_back(Sm90GemmKnobs{.schedule = blocks == 3 ? cooperative : pingPong,
                                  .tileM = blocks == 3 ? 128 : 64,
                                  .tileN = 64,
                                  .stages = 3,
                                  .epilogueStages = 2,
                                  .blocks = blocks});
  const std::vector<Subject> subjects =
      sumSubjects(samples::sumOverTokens(summedExtents, DType::f16), tiles, "sm_90a", true);
  const emulate::HostLibrary built =
      libraryOf("summed_tokens_sm90", subjects, emulate::DeviceHeaders::translated);
  for (size_t i = 0; i < subjects.size(); ++i)
    checkSums(subjects[i], built.kernel(i), summedCounts, [](int64_t count) {
      return std::max<int64_t>(1, (count + kTile - 1) / kTile) * kTile;
    });
}

TEST_CASE("sums over packed tokens end with the k-tile of the last one in tiles of warps") {
  for (const int depth : {32, 64}) {
    const std::vector<Knobs> tiles{Sm80GemmKnobs{.tileM = 64,
                                                 .tileN = 64,
                                                 .tileK = depth,
                                                 .stages = depth == 32 ? 4 : 2,
                                                 .warpsM = 2,
                                                 .warpsN = 2}};
    const std::vector<Subject> subjects =
        sumSubjects(samples::sumOverTokens(summedExtents, DType::bf16), tiles, "sm_80", true);
    const emulate::HostLibrary built =
        libraryOf(fmt::format("summed_tokens_sm80_{}", depth), subjects);
    checkSums(subjects[0], built.kernel(0), summedCounts,
              [&](int64_t count) { return (count + depth - 1) / depth * depth; });
  }
}

TEST_CASE("tiles without tensor cores add the zeros behind the last token") {
  const samples::TokenExtents extents{.t = 136, .i = 72, .u = 72, .sequences = 3};
  const std::vector<Knobs> tiles{FmaGemmKnobs{}};
  const std::vector<Subject> subjects =
      sumSubjects(samples::sumOverTokens(extents, DType::f16), tiles, "sm_86", false);
  const emulate::HostLibrary built = libraryOf("added_zeros_sm_86", subjects);
  constexpr int64_t counts[] = {0, 37, 136};
  checkSums(subjects[0], built.kernel(0), counts, [&](int64_t) { return extents.t; });
}

TEST_CASE("a result that lacks the mask keeps every tile") {
  const samples::TokenExtents extents{.t = 64, .i = 64, .u = 64, .sequences = 3};
  Kernel kernel = samples::gemmOfTokens(extents, DType::f16, true, true);
  const std::optional<UnusedTokens> unused = unusedTokens(kernel);
  REQUIRE(unused);
  CHECK(kernel.axes[size_t(unused->axis)].name == "t");
  CHECK(kernel.values[size_t(unused->offsets)].name == "offsets");
  CHECK(unused->element == 3);
  CHECK(tokenSide(kernel, contractionRegion(kernel).value(), false) == TokenSide::columns);
  CHECK(tokenSide(kernel, contractionRegion(kernel).value(), true) == TokenSide::rows);
  kernel.outputs[1] = kernel.body[1].results[0];
  CHECK(!unusedTokens(kernel));
  CHECK(tokenSide(kernel, contractionRegion(kernel).value(), false) == TokenSide::none);
}
