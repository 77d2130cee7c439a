// Scores under a block mask on the host, down to the PTX of sm_90a: tiles that the table leaves
// nothing of are left out by whoever loads and whoever multiplies, and every score is that of fp64,
// -inf where its tile does not exist. A tile that were left out too many would show at once.
#include "codegen/Emit.h"
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/contraction/MaskedTiles.h"
#include "codegen/families/gemm_sm80/Sm80Cost.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Cost.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Device.h"
#include "kernel/Error.h"
#include "passes/configure/Families.h"
#include "passes/configure/Family.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleKernels.h"

#include <fmt/format.h>

#include <set>
#include <string>

using namespace weft;
using samples::KernelBuilder;
using weft::test::nonEmpty;

namespace {

/// What follows the contraction, beside the mask.
enum class Behind : uint8_t { nothing, valueOps, softmax, scores };

/// A table of 5 x 9 tiles whose second row and fourth column are empty.
constexpr const char *holes = "table(block=32,heads=1,rows=5,columns=9,bits=1500001717f0601)";

Kernel maskedScores(Behind behind, const std::string &pattern = holes, int64_t j = 150,
                    int64_t k = 270, bool isByHead = false, int64_t p = 64) {
  constexpr int64_t length = 64;
  KernelBuilder builder("scores_in_blocks",
                        {{'h', 2}, {'j', j}, {'k', k}, {'n', (k + length - 1) / length}, {'p', p}});
  const int q = builder.input("q", "hjp"), keys = builder.input("keys", "hkp");
  const ValueId bias = behind == Behind::valueOps ? builder.input("bias", "k") : ValueId();
  const int scores =
      builder.op("contract", OperatorClass::contraction, {q, keys}, "scores", "hjk", "p");
  builder.last().attributes = {{"spec", std::string("hjp,hkp->hjk")}, {"scale", 0.125}};
  int of = scores;
  if (behind == Behind::valueOps) {
    of = builder.op("add", OperatorClass::elementwise, {of, bias}, "biased", "hjk");
    builder.last().expression = Expression::parse("{0} + {1}");
  }
  MaskShape shape{.kind = MaskShape::Kind::pattern, .key = 2, .query = 1};
  if (isByHead) shape.heads = {0}, shape.headExtents = {2};
  const int seen = builder.op("mask", OperatorClass::elementwise, {of}, "seen", "hjk");
  builder.last().attributes = {{"kind", std::string("pattern")},
                               {"key", int64_t(2)},
                               {"query", int64_t(1)},
                               {"pattern", pattern}};
  if (isByHead) builder.last().attributes["along"] = std::vector<int64_t>{0};
  builder.compute(maskExpression(shape));
  if (behind == Behind::scores) return builder.build({seen, scores});
  if (behind != Behind::softmax) return builder.build({seen});
  const int exponentials =
      builder.op("local_softmax", OperatorClass::normalization, {seen}, "exponentials", "hjk", "k");
  builder.last().attributes = {{"axis", int64_t(2)}, {"tile", length}};
  const int maxima = builder.also("maxima", "hjn", DType::f32),
            sums = builder.also("sums", "hjn", DType::f32);
  return builder.build({exponentials, maxima, sums});
}

std::optional<MaskedTiles> maskedTilesOf(const Kernel &kernel, bool isSwapped = false) {
  return maskedTiles(kernel, contractionRegion(kernel).value(), isSwapped);
}

struct Subject {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted = {};
};

/// Queries along rows and along columns of the kernel template's GEMM, with every tile that the
/// kernel takes.
void add(const Kernel &kernel, const std::vector<Knobs> &tiles, const std::string &target,
         std::vector<Subject> &subjects) {
  std::set<std::string> seen;
  for (const LayoutTuple &tuple : nonEmpty(contractionTuples(kernel)))
    for (const Knobs &tile : tiles) {
      Subject subject{.kernel = kernel, .configuration = toConfiguration(kernel, tuple, tile)};
      try {
        subject.emitted = codegen::emit(kernel, subject.configuration, target);
      } catch (const Error &) {
        continue;
      }
      const std::string &text = subject.emitted.text;
      const size_t at = text.find("::maskedTiles<");
      REQUIRE(at != std::string::npos);
      const bool areRowsKeys = text.substr(at, text.find('>', at) - at).ends_with("true");
      if (seen.insert(fmt::format("{} {}", areRowsKeys, describe(kernel, tile))).second)
        subjects.push_back(std::move(subject));
    }
  CHECK(seen.size() == 2 * tiles.size());
}

void checkAll(const std::string &name, const std::vector<Subject> &subjects,
              emulate::DeviceHeaders headers = emulate::DeviceHeaders::standIns) {
  std::vector<emulate::Source> sources;
  for (const Subject &subject : nonEmpty(subjects))
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  const emulate::HostLibrary built(name, sources, headers);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject &subject = subjects[i];
    INFO(describe(subject.kernel, subject.configuration.knobs) << "\n" << subject.emitted.readable);
    emulate::checkEmitted(subject.kernel, subject.configuration, subject.emitted, built.kernel(i),
                          subject.emitted.launch.grid, subject.emitted.launch.block);
  }
}

}  // namespace

TEST_CASE("warps multiply no tile of scores that a block mask leaves nothing of") {
  const Sm80GemmKnobs tiles[] = {
      {.tileM = 64, .tileN = 64, .tileK = 32, .stages = 3, .warpsM = 2, .warpsN = 2},
      {.tileM = 128, .tileN = 64, .tileK = 32, .stages = 3, .warpsM = 4, .warpsN = 1}};
  std::vector<Subject> subjects;
  add(maskedScores(Behind::nothing), {tiles[0], tiles[1]}, "sm_80", subjects);
  add(maskedScores(Behind::valueOps), {tiles[0]}, "sm_80", subjects);
  checkAll("masked_tiles_sm80", subjects);
}

TEST_CASE("tiles of sm_90a that a block mask leaves nothing of are neither loaded nor multiplied") {
  using enum Sm90Schedule;
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
                                  .blocks = 3}};
  std::vector<Subject> subjects;
  add(maskedScores(Behind::nothing), {tiles[0], tiles[1]}, "sm_90a", subjects);
  add(maskedScores(Behind::valueOps), {tiles[0]}, "sm_90a", subjects);
  checkAll("masked_tiles_sm90", subjects, emulate::DeviceHeaders::translated);
}

TEST_CASE("a local softmax behind a block mask has no products of tiles that it hides") {
  const Kernel kernel = maskedScores(Behind::softmax);
  // Some of what a target is offered, each with other knobs.
  const auto subjectsOf = [&]<typename OfFamily>(const OfFamily &, const char *device,
                                                 const char *target) {
    constexpr size_t most = 2;
    std::vector<Subject> subjects;
    std::set<Knobs> seen;
    forEachConfiguration(kernel, findDevice(device), {}, [&](const Configuration &own) {
      if (!own.knobs.is<OfFamily>() || !seen.insert(own.knobs).second) return true;
      Subject subject{.kernel = kernel, .configuration = own};
      subject.emitted = codegen::emit(kernel, own, target);
      if (subject.emitted.text.find("::maskedTiles<") != std::string::npos)
        subjects.push_back(std::move(subject));
      return subjects.size() < most;
    });
    CHECK(subjects.size() == most);
    return subjects;
  };
  checkAll("masked_tiles_softmax_sm80", subjectsOf(Sm80GemmKnobs{}, "a100", "sm_80"));
  checkAll("masked_tiles_softmax_sm90", subjectsOf(Sm90GemmKnobs{}, "h200", "sm_90a"),
           emulate::DeviceHeaders::translated);
}

TEST_CASE("what needs the scores of every tile keeps all of them") {
  const auto tiles = maskedTilesOf(maskedScores(Behind::nothing));
  REQUIRE(tiles);
  CHECK_FALSE(tiles->areRowsKeys);
  CHECK(maskedTilesOf(maskedScores(Behind::nothing), true)->areRowsKeys);
  CHECK(maskedTilesOf(maskedScores(Behind::softmax)));
  // Scores that are stored, too, and tables of which each head has one.
  CHECK_FALSE(maskedTilesOf(maskedScores(Behind::scores)));
  CHECK_FALSE(maskedTilesOf(maskedScores(
      Behind::nothing, "random(block=16,density=0.2,seed=1,heads=each)", 150, 270, true)));
  // Of 5 x 9 tiles of 32 scores; of one tile, and of tiles that are as large as the table's.
  CHECK(tiles->seenShare(512, 512) == 1);
  CHECK(tiles->seenShare(32, 32) == double(tiles->table->count()) / 45);
  CHECK(tiles->seenShare(64, 64) > tiles->seenShare(32, 32));
}

TEST_CASE("products of scores are priced by the tiles that a block mask leaves") {
  const auto least = [](const Kernel &kernel, const char *device) {
    double seconds = 1;
    for (const LayoutTuple &tuple : nonEmpty(contractionTuples(kernel))) {
      const Sm80GemmKnobs knobs{.tileM = 128, .tileN = 128, .tileK = 32, .stages = 3};
      const Configuration configuration = toConfiguration(kernel, tuple, knobs);
      if (!mmaSyncProblem(kernel, configuration)) continue;
      Device own = findDevice(device);
      own.familiesTakenAway.insert(familyNamed("cublaslt"));
      seconds = std::min(seconds, sm80Cost(kernel, configuration, knobs, own).seconds);
    }
    return seconds;
  };
  constexpr int64_t length = 4096;
  const auto scores = [](const char *pattern) {
    return maskedScores(Behind::nothing, pattern, length, length, false, 512);
  };
  const double few = least(scores("bigbird(block=128,random=1,seed=0)"), "a100"),
               all = least(scores("random(block=128,density=1,seed=0)"), "a100");
  CHECK(few < 0.95 * all);
  CHECK(few > 0.3 * all);  // scores are stored whole
}
