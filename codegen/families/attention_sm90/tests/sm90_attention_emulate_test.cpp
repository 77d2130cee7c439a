// Fused attention by TMA and WGMMA on the host, down to the PTX of its device headers: tiles and
// stages on extents that cut them, masks, head dimensions, groups of heads, dropout. Compared with
// single elements in fp64.
#include "codegen/families/attention/AttentionDropout.h"
#include "codegen/families/attention/AttentionLayouts.h"
#include "codegen/families/attention_sm90/Sm90AttentionTile.h"
#include "kernel/Error.h"
#include "tests/emulate/AttentionDocuments.h"
#include "tests/emulate/AttentionPages.h"
#include "tests/emulate/AttentionScores.h"
#include "tests/emulate/AttentionTokenStarts.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/emulate/PoisonedAttentions.h"
#include "tests/support/NonEmpty.h"
#include "tests/unit/samples/SampleAttentions.h"

#include <fmt/format.h>

using namespace weft;
using namespace weft::samples;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  std::vector<double> lengths = {}, offsets = {};  ///< of the inputs of these names
  std::vector<double> segments = {};               ///< of the input of that name
  emulate::Poison poison = {};  ///< what hidden elements hold that are no numbers
  ScoreKind scores = ScoreKind::usual;
  bool areMeans = false;  ///< results are means of values: emulate::checkMeans()
  codegen::EmittedKernel emitted = {};
};

/// Layouts by number among all that the family takes.
Configuration configurationOf(const Kernel &kernel, const Sm90AttentionKnobs &knobs,
                              size_t number) {
  const AttentionRegion region = attentionRegion(kernel).value();
  const std::vector<LayoutTuple> tuples = attentionTuples(kernel, region);
  for (size_t n = 0; n < tuples.size(); ++n) {
    const Configuration configuration =
        toConfiguration(kernel, tuples[(number + n) % tuples.size()], knobs);
    const auto problem = attentionProblem(kernel, region, configuration);
    if (problem && sm90AttentionLayoutRejection(*problem).empty() &&
        attentionDropoutRejection(kernel, region, *problem).empty() &&
        (knobs.packed == 0 || sm90PackedLayoutRejection(*problem).empty()))
      return configuration;
  }
  throw Error::checkFailed("no layouts");
}

void add(std::vector<Subject> &subjects, const Kernel &kernel, const Sm90AttentionKnobs &knobs,
         const std::vector<double> &lengths = {}, const std::vector<double> &offsets = {}) {
  subjects.push_back({.kernel = kernel,
                      .configuration = configurationOf(kernel, knobs, 37 * subjects.size()),
                      .lengths = lengths,
                      .offsets = offsets});
}

void checkAll(const std::string &name, std::vector<Subject> &subjects,
              emulate::Rounding rounding = emulate::Rounding::ofEach) {
  std::vector<emulate::Source> sources;
  for (Subject &subject : subjects) {
    subject.emitted = codegen::emit(subject.kernel, subject.configuration, "sm_90a");
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  }
  const emulate::HostLibrary built(name, sources, emulate::DeviceHeaders::translated, rounding);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject &subject = subjects[i];
    INFO(subject.kernel.name << ", " << describe(subject.kernel, subject.configuration.knobs)
                             << "\n"
                             << subject.emitted.readable);
    const auto fill = [&](size_t input, const emulate::Tensor &tensor) {
      const std::string &name = subject.kernel.values[size_t(subject.kernel.inputs[input])].name;
      if (name == "token_starts") {
        emulate::fillTokenStarts(subject.offsets, tensor);
        return true;
      }
      if (name != "lengths" && name != "offsets")
        return emulate::fillScores(subject.scores, name, tensor);
      const std::vector<double> &own = name == "lengths" ? subject.lengths : subject.offsets;
      size_t place = 0;
      tensor.forEach([&](std::span<const int64_t> at) {
        reference::storeElement(tensor.type, tensor.at(at), own.at(place++));
      });
      return true;
    };
    // What follows the last token may be anything.
    const auto poison = [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
      emulate::fillPages(subject.kernel, subject.lengths, tensors);
      emulate::fillDocuments(subject.kernel, subject.segments, tensors);
      emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::fill, tensors);
      const auto packed = attentionRegion(subject.kernel).value().packed;
      for (size_t input = 0; packed && input < subject.kernel.inputs.size(); ++input) {
        const std::vector<AxisId> &axes =
            subject.kernel.values[size_t(subject.kernel.inputs[input])].axes;
        for (const int tokens : {packed->q, packed->k, packed->v})
          if (const auto along = std::ranges::find(axes, tokens); along != axes.end())
            tensors[input]->forEach([&](std::span<const int64_t> at) {
              if (const int64_t token = at[size_t(along - axes.begin())];
                  double(token) >= subject.offsets.back())
                reference::storeElement(tensors[input]->type, tensors[input]->at(at),
                                        emulate::notNumber(token));
            });
      }
    };
    emulate::checkEmitted(
        subject.kernel, subject.configuration, subject.emitted, built.kernel(i),
        subject.emitted.launch.grid, subject.emitted.launch.block, fill, poison,
        [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
          emulate::fillPages(subject.kernel, subject.lengths, tensors, emulate::PoisonStep::remove);
          emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::remove,
                               tensors);
          if (subject.areMeans) emulate::checkMeans(subject.kernel, subject.scores, tensors);
        },
        emulate::mayDiffer(subject.kernel, subject.poison));
  }
}

}  // namespace

TEST_CASE("attention of every number of consumers, ordered or not, and of stages") {
  std::vector<Subject> subjects;
  // Blocks take several tiles each; extents cut tiles of queries and blocks of keys.
  const AttentionExtents cut{.b = 1, .h = 2, .j = 200, .k = 171, .p = 64, .w = 64},
      whole{.b = 1, .h = 2, .j = 192, .k = 128, .p = 64, .w = 64};
  for (const int tileQueries : {64, 128, 192})
    for (const int ordered : {0, 1}) {
      add(subjects, plainAttention(cut, DType::f16, ordered == 1),
          {.tileQueries = tileQueries,
           .tileKeys = 64,
           .queryStages = 2,
           .ordered = ordered,
           .blocks = 2});
      add(subjects, causalAttention(whole, DType::bf16, ordered == 0),
          {.tileQueries = tileQueries,
           .tileKeys = 48,
           .stages = 3,
           .queryStages = 1,
           .ordered = ordered,
           .headGroup = 2,
           .blocks = 1});
    }
  checkAll("sm90_attention_tiles", subjects);
}

TEST_CASE("consumers that share rows take blocks of keys in turn") {
  std::vector<Subject> subjects;
  // Fewer blocks than consumers, as many, and numbers that are no multiple; several tiles a block.
  for (const int consumers : {2, 3})
    for (const int64_t k : {40, 64, 171, 300}) {
      const Sm90AttentionKnobs knobs{.tileQueries = 64,
                                     .tileKeys = 64,
                                     .stages = consumers + int(k % 2) * consumers,
                                     .queryStages = 2 - int(k % 2),
                                     .ordered = 0,
                                     .keyConsumers = consumers,
                                     .blocks = 2};
      const AttentionExtents e{.b = 2, .h = 1, .j = 130, .k = k, .p = 32, .w = 40};
      add(subjects, plainAttention(e, DType::f16, k == 171), knobs);
      add(subjects, paddedAttention(e, DType::bf16, true), knobs, {double(k) - 30, 0});
      Sm90AttentionKnobs grouped = knobs;
      grouped.headGroup = 2;
      add(subjects, causalAttention(e, DType::f16, true), grouped);
    }
  const Sm90AttentionKnobs two{
      .tileQueries = 64, .tileKeys = 32, .stages = 4, .ordered = 0, .keyConsumers = 2, .blocks = 3};
  const AttentionExtents scored{.b = 2, .h = 2, .j = 75, .k = 90, .p = 32, .w = 40};
  add(subjects, cappedAttention(scored, DType::f16, true), two);
  add(subjects, droppedAttention(scored, DType::bf16, {.p = 0.25, .stream = 3}, true, true), two);
  add(subjects,
      packedAttention({.b = 4, .h = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 330},
                      DType::f16, true),
      two, {70, 0, 1, 150}, {0, 70, 70, 71, 221});
  // The output leaves through the place of the queries, which all consumers have read by then.
  const Kernel wide = plainAttention({.h = 1, .j = 150, .k = 99, .p = 256, .w = 256}, DType::bf16);
  const Sm90AttentionKnobs narrow{
      .tileQueries = 64, .tileKeys = 64, .stages = 2, .ordered = 0, .keyConsumers = 2, .blocks = 1};
  const AttentionProblem problem = valueOrThrow(
      attentionProblem(wide, attentionRegion(wide).value(), configurationOf(wide, narrow, 0)));
  REQUIRE(sm90AttentionStaysInQ(problem, narrow));
  add(subjects, wide, narrow);
  checkAll("sm90_attention_key_consumers", subjects);
}

TEST_CASE("keys and values come by boxes from the pages that the table lists") {
  std::vector<Subject> subjects;
  // Blocks of several pages, of one, of a part of one; the last block has fewer.
  add(subjects,
      cachedAttention(
          {.b = 2, .h = 1, .g = 2, .j = 70, .k = 176, .p = 64, .w = 64, .page = 16, .pages = 22},
          DType::f16),
      {.tileQueries = 64, .tileKeys = 64, .ordered = 0, .blocks = 2}, {0, 77});
  add(subjects,
      cachedAttention({.b = 2, .h = 2, .j = 65, .k = 192, .p = 80, .w = 72, .page = 48, .pages = 8},
                      DType::bf16),
      {.tileQueries = 128, .tileKeys = 48, .stages = 3, .queryStages = 1, .blocks = 1}, {10, 127});
  add(subjects,
      cachedAttention(
          {.b = 1, .h = 2, .j = 64, .k = 384, .p = 32, .w = 64, .page = 128, .pages = 3},
          DType::f16),
      {.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 1}, {130});
  checkAll("sm90_attention_pages", subjects);
}

TEST_CASE("attention of every number of panels of columns") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs knobs{.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 1};
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{24, 24},
                             {40, 72},
                             {80, 80},
                             {128, 128},
                             {192, 128},
                             {256, 256}})
    add(subjects, plainAttention({.h = 1, .j = 70, .k = 75, .p = p, .w = w}, DType::f16), knobs);
  add(subjects, plainAttention({.h = 1, .j = 70, .k = 75, .p = 96, .w = 96}, DType::bf16, true),
      {.tileQueries = 192, .tileKeys = 80, .blocks = 1});
  // No place for the output but that of the queries.
  const Kernel wide = plainAttention({.h = 1, .j = 150, .k = 99, .p = 256, .w = 256}, DType::bf16);
  const Sm90AttentionKnobs widest{.tileQueries = 128, .tileKeys = 80, .ordered = 0, .blocks = 1};
  const AttentionProblem problem = valueOrThrow(
      attentionProblem(wide, attentionRegion(wide).value(), configurationOf(wide, widest, 0)));
  REQUIRE(sm90AttentionStaysInQ(problem, widest));
  add(subjects, wide, widest);
  checkAll("sm90_attention_dimensions", subjects);
}

TEST_CASE("attention by three blocks a multiprocessor, and windows with global positions") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs knobs{.tileQueries = 64,
                                 .tileKeys = 64,
                                 .queryStages = 2,
                                 .ordered = 0,
                                 .headGroup = 3,
                                 .residents = 3,
                                 .blocks = 4};
  const AttentionExtents e{.b = 1, .h = 3, .j = 128, .k = 192, .p = 64, .w = 64};
  add(subjects, windowAttention(e, DType::f16, 12, 12, 64), knobs);
  add(subjects, plainAttention({.b = 1, .h = 3, .j = 64, .k = 192, .p = 64, .w = 64}, DType::f16),
      knobs);
  checkAll("sm90_attention_residents", subjects);
}

TEST_CASE("masked attention skips empty blocks, and rows without keys give zeros") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs knobs{
      .tileQueries = 128, .tileKeys = 32, .queryStages = 2, .headGroup = 2, .blocks = 2};
  for (const auto &[j, k] :
       {std::pair<int64_t, int64_t>{100, 100}, {70, 200}, {200, 70}, {1, 130}}) {
    const AttentionExtents e{.b = 3, .h = 1, .j = j, .k = k, .p = 32, .w = 32};
    // More queries than keys: the first ones see none.
    add(subjects, causalAttention(e, DType::f16, true), knobs);
    add(subjects, windowAttention(e, DType::bf16, 20, 7), knobs);
    add(subjects, paddedAttention(e, DType::f16), knobs, {0, 1, double(k)});
    add(subjects, paddedAttention(e, DType::bf16, true), knobs, {double(k) - 30, 33, 0});
    add(subjects, attentionOfTokens(e, DType::f16), knobs, {0, 37, double(j)});
  }
  // Masks are asked about 32 blocks of keys at once.
  add(subjects, causalAttention({.b = 1, .h = 1, .j = 70, .k = 1200, .p = 32, .w = 32}, DType::f16),
      knobs);
  checkAll("sm90_attention_masks", subjects);
}

TEST_CASE("block masks of all heads and of each, with rows and columns without a tile") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs knobs{
      .tileQueries = 128, .tileKeys = 64, .queryStages = 2, .headGroup = 2, .blocks = 2};
  // A table of 5 x 9 tiles whose second row and fourth column are empty.
  const std::string holes = "table(block=32,heads=1,rows=5,columns=9,bits=1500001717f0601)";
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 270, .p = 32, .w = 32};
  add(subjects, blockAttention(cut, DType::f16, holes, false, false, true), knobs);
  add(subjects, blockAttention(cut, DType::bf16, holes, false, true), knobs);
  // Most rows of tiles are empty, of one head or the other.
  add(subjects,
      blockAttention(cut, DType::f16, "random(block=16,density=0.03,seed=2,heads=each)", true),
      {.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 3});
  add(subjects,
      blockAttention({.b = 2, .h = 1, .g = 2, .j = 130, .k = 130, .p = 32, .w = 32}, DType::bf16,
                     "bigbird(block=16,window=3,global=2,random=1,seed=0,heads=each)", true, true),
      knobs);
  // Coverage is asked of 32 blocks of keys at once, and a row of tiles has three words.
  add(subjects,
      blockAttention({.b = 1, .h = 1, .j = 70, .k = 1200, .p = 32, .w = 32}, DType::f16,
                     "random(block=16,density=0.1,seed=5)"),
      {.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 1});
  checkAll("sm90_attention_block_masks", subjects);
}

TEST_CASE("a document mask with bounds skips tiles between documents, in any order of segments") {
  std::vector<Subject> subjects;
  // Tiles of 64 and 128 queries meet three and more tiles of segments; extents cut all of them.
  const Sm90AttentionKnobs knobs{.tileQueries = 64,
                                 .tileKeys = 64,
                                 .queryStages = 2,
                                 .ordered = 0,
                                 .headGroup = 2,
                                 .blocks = 2};
  for (const int64_t run : {1, 40, 96}) {
    const AttentionExtents e{
        .b = 2, .h = 1, .g = 2, .j = 131, .k = 203, .p = 32, .w = 40, .hasBounds = true};
    add(subjects, documentAttention(e, DType::f16, run == 40), knobs);
    subjects.back().segments = emulate::segmentsOf(e.b, e.k, run);
  }
  const AttentionExtents last{
      .b = 1, .h = 2, .j = 70, .k = 258, .p = 32, .w = 32, .hasBounds = true};
  for (const int tileKeys : {32, 64}) {
    add(subjects, documentAttention(last, DType::bf16),
        {.tileQueries = 128, .tileKeys = tileKeys, .blocks = 1});
    subjects.back().segments = emulate::hiddenDocuments(last.k, 160);
    subjects.back().poison = emulate::unreadKeys(0, 128);
  }
  checkAll("sm90_attention_documents", subjects);
}

TEST_CASE("adversarial scores: equal, one huge, as large as f16 holds, all low, tiny") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 1, .h = 1, .j = 75, .k = 133, .p = 64, .w = 64};
  for (const ScoreKind scores : adversarialScores) {
    for (const DType type : {DType::f16, DType::bf16}) {
      add(subjects, plainAttention(e, type, true),
          {.tileQueries = 64, .tileKeys = 64, .stages = 2});
      subjects.back().scores = scores;
      // Most scores are -inf.
      add(subjects, windowAttention(e, type, 3, 0),
          {.tileQueries = 128, .tileKeys = 64, .stages = 2});
      subjects.back().scores = scores;
    }
  }
  checkAll("sm90_attention_adversarial", subjects);
}

TEST_CASE("a maximum that stays leaves sums of other blocks of keys as they are") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 1, .h = 1, .g = 2, .j = 40, .k = 1100, .p = 24, .w = 24};
  for (const ScoreKind scores : {ScoreKind::extreme, ScoreKind::lowest})
    for (const DType type : {DType::f16, DType::bf16})
      // In one loop, in another's order, by consumers of keys, and in splits of blocks.
      for (const Sm90AttentionKnobs &knobs : std::initializer_list<Sm90AttentionKnobs>{
               {.tileQueries = 64, .tileKeys = 32, .ordered = 0},
               {.tileQueries = 128, .tileKeys = 48, .queryStages = 2, .ordered = 1},
               {.tileQueries = 64, .tileKeys = 64, .ordered = 0, .keyConsumers = 2},
               {.tileQueries = 64, .tileKeys = 32, .ordered = 0, .splits = 5}}) {
        add(subjects, plainAttention(e, type, true), knobs);
        subjects.back().scores = scores;
        subjects.back().areMeans = true;
      }
  checkAll("sm90_attention_means", subjects, emulate::Rounding::contracted);
}

TEST_CASE("score ops and dropout see the coordinates of every score") {
  std::vector<Subject> subjects;
  const AttentionExtents e{
      .b = 2, .h = 2, .g = 2, .j = 75, .k = 90, .p = 32, .w = 40, .distance = 20};
  const Sm90AttentionKnobs knobs{
      .tileQueries = 128, .tileKeys = 64, .queryStages = 2, .headGroup = 4, .blocks = 3};
  for (const DType type : {DType::f16, DType::bf16}) {
    add(subjects, biasedAttention(e, type), knobs);
    add(subjects, cappedAttention(e, type, true), knobs);
    add(subjects, documentAttention(e, type, type == DType::f16), knobs);
    add(subjects, droppedAttention(e, type, {.p = 0.25, .stream = 3}, type == DType::f16, true),
        knobs);
  }
  // Gathered from rows, at distances beyond the tables on both sides.
  add(subjects, disentangledAttention(e, DType::f16),
      {.tileQueries = 128, .tileKeys = 48, .queryStages = 2, .ordered = 1, .blocks = 3});
  add(subjects, disentangledAttention(e, DType::bf16, true),
      {.tileQueries = 64, .tileKeys = 32, .blocks = 3}, {90, 37});
  checkAll("sm90_attention_scores", subjects);
}

TEST_CASE("heads of a group share keys and values") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs knobs{.tileQueries = 64, .tileKeys = 64, .ordered = 0, .blocks = 4};
  add(subjects,
      plainAttention({.b = 2, .h = 2, .g = 3, .j = 40, .k = 80, .p = 32, .w = 24}, DType::f16,
                     true),
      knobs);
  add(subjects,
      causalAttention({.b = 2, .h = 3, .g = 2, .j = 65, .k = 70, .p = 32, .w = 32}, DType::bf16),
      knobs);
  add(subjects, plainAttention({.b = 1, .h = 1, .j = 1, .k = 1, .p = 32, .w = 32}, DType::f16),
      knobs);
  checkAll("sm90_attention_groups", subjects);
}

TEST_CASE("heads of a group are rows of one tile, whatever their number") {
  std::vector<Subject> subjects;
  const auto knobs = [](int tileQueries, int blocks) {
    return Sm90AttentionKnobs{.tileQueries = tileQueries,
                              .tileKeys = 64,
                              .queryStages = 2,
                              .ordered = tileQueries > 64 ? 1 : 0,
                              .packed = 1,
                              .blocks = blocks};
  };
  // Groups that divide the 64 rows of a consumer and groups that leave some of none; fewer queries
  // than a tile, as many, and several tiles, of which the last one is cut; two panels of columns.
  for (const auto &[g, j, tileQueries] : {std::tuple<int64_t, int64_t, int>{2, 33, 64},
                                          {3, 5, 64},
                                          {3, 50, 128},
                                          {4, 16, 64},
                                          {5, 40, 128},
                                          {7, 20, 64},
                                          {8, 16, 128},
                                          {64, 3, 128},
                                          {48, 2, 64}}) {
    const AttentionExtents e{.b = 2, .h = 2, .g = g, .j = j, .k = 171, .p = 32, .w = 72};
    add(subjects, plainAttention(e, DType::f16, true), knobs(tileQueries, 3));
    Sm90AttentionKnobs together = knobs(tileQueries, 2);
    together.headGroup = int(2 * g);
    add(subjects, causalAttention(e, DType::bf16, true), together);
  }
  // The output leaves through the place of the queries.
  const Kernel wide =
      plainAttention({.h = 1, .g = 6, .j = 30, .k = 99, .p = 256, .w = 256}, DType::bf16, true);
  Sm90AttentionKnobs widest = knobs(128, 1);
  widest.tileKeys = 80, widest.queryStages = 1, widest.ordered = 0;
  const AttentionProblem problem = valueOrThrow(
      attentionProblem(wide, attentionRegion(wide).value(), configurationOf(wide, widest, 0)));
  REQUIRE(sm90AttentionStaysInQ(problem, widest));
  add(subjects, wide, widest);
  checkAll("sm90_attention_packed_heads", subjects);
}

TEST_CASE("rows of packed heads see their own masks, score ops, counts and pages") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs one{
      .tileQueries = 64, .tileKeys = 64, .ordered = 0, .packed = 1, .blocks = 3},
      two{.tileQueries = 128, .tileKeys = 32, .queryStages = 2, .packed = 1, .blocks = 2};
  for (const int64_t g : {3, 4}) {
    const AttentionExtents e{
        .b = 2, .h = 2, .g = g, .j = 25, .k = 203, .p = 32, .w = 40, .distance = 20};
    add(subjects, windowAttention(e, DType::f16, 20, 7), one);
    add(subjects, biasedAttention(e, DType::bf16), two);
    add(subjects, cappedAttention(e, DType::f16, true), one);
    add(subjects, alibiAttention(e, DType::bf16), one);
    add(subjects, relativeAttention(e, DType::f16), two);
    // What lies behind the counts is no number.
    for (const Sm90AttentionKnobs &knobs : {one, two}) {
      add(subjects, paddedAttention(e, DType::f16, true), knobs, {0, 121});
      subjects.back().poison = emulate::keysBehind({0, 121});
      add(subjects, cachedAttention(e, DType::bf16), knobs, {3, 150});
      subjects.back().poison = emulate::keysBehind({3 + e.j, 150 + e.j});
    }
    // A table for each head of a group, so that one skips what another sees; and for all.
    for (const bool isByHead : {false, true})
      add(subjects,
          blockAttention(e, DType::bf16,
                         isByHead ? "random(block=16,density=0.2,seed=3,heads=each)"
                                  : "random(block=16,density=0.2,seed=3)",
                         isByHead, false, true),
          isByHead ? two : one);
    // Counts of each head: a block that the first one sees whole is a part of another's, or none.
    FusedAttention byHead("keys_of_head", e, DType::f16);
    const int lengths = byHead.input("lengths", "hg", DType::i32);
    std::vector<double> counts;
    for (int64_t head = 0; head < e.h * g; ++head) counts.push_back(double(head * 67 % 204));
    add(subjects, byHead.build(byHead.padding(byHead.scores(), lengths, {1, 2})), one, counts);
    AttentionExtents bounded = e;
    bounded.hasBounds = true;
    add(subjects, documentAttention(bounded, DType::f16, true), one);
    subjects.back().segments = emulate::segmentsOf(e.b, e.k, 40);
  }
  // A tile of the table is whole in every tile of scores; of packed heads it is a part of one.
  add(subjects,
      blockAttention({.h = 1, .g = 3, .j = 128, .k = 256, .p = 32, .w = 32}, DType::f16,
                     "fixed(block=64,stride=3,summary=1)"),
      one);
  add(subjects,
      cachedAttention(
          {.b = 2, .h = 2, .g = 4, .j = 9, .k = 176, .p = 64, .w = 64, .page = 16, .pages = 22},
          DType::f16),
      one, {0, 77});
  // Consumers that share the rows.
  Sm90AttentionKnobs shared = one;
  shared.stages = 4, shared.keyConsumers = 2;
  add(subjects, causalAttention({.b = 2, .h = 1, .g = 5, .j = 31, .k = 300}, DType::f16, true),
      shared);
  checkAll("sm90_attention_packed_masks", subjects);
}

TEST_CASE("blocks that share the keys of a tile leave their sums to the last one to arrive") {
  std::vector<Subject> subjects;
  const auto knobs = [](int tileQueries, int packed, int splits, int blocks) {
    return Sm90AttentionKnobs{.tileQueries = tileQueries,
                              .tileKeys = 32,
                              .queryStages = tileQueries > 64 ? 2 : 1,
                              .ordered = 0,
                              .packed = packed,
                              .splits = splits,
                              .blocks = blocks};
  };
  // 7 blocks of keys, of which the last is cut: as many a split, one more for some, one for each.
  // Blocks take several splits of a tile, or one each.
  for (const auto &[g, j, tileQueries, splits, blocks] :
       {std::tuple<int64_t, int64_t, int, int, int>{3, 25, 64, 2, 3},
        {4, 40, 128, 3, 64},
        {5, 13, 64, 7, 2}}) {
    const AttentionExtents e{
        .b = 2, .h = 2, .g = g, .j = j, .k = 203, .p = 32, .w = 72, .distance = 20};
    const Sm90AttentionKnobs packed = knobs(tileQueries, 1, splits, blocks),
                             apart = knobs(tileQueries, 0, splits, blocks);
    add(subjects, plainAttention(e, DType::f16, true), packed);
    add(subjects, plainAttention(e, DType::bf16), apart);
    Sm90AttentionKnobs together = packed;
    together.headGroup = int(2 * g);
    add(subjects, causalAttention(e, DType::bf16, true), together);
    // Splits of a row of which some see no key, and none.
    add(subjects, windowAttention(e, DType::f16, 20, 7), apart);
    add(subjects, windowAttention(e, DType::bf16, 120, 0, 40), packed);
    add(subjects, paddedAttention(e, DType::f16, true), packed, {0, 121});
    subjects.back().poison = emulate::keysBehind({0, 121});
    add(subjects, cachedAttention(e, DType::bf16), packed, {3, 130});
    subjects.back().poison = emulate::keysBehind({3 + e.j, 130 + e.j});
    add(subjects, biasedAttention(e, DType::bf16), packed);
    add(subjects, cappedAttention(e, DType::f16, true), apart);
    add(subjects, alibiAttention(e, DType::bf16), packed);
    add(subjects, alibiAttention(e, DType::f16), apart);
    // Documents with bounds, which skip tiles, and without, in an order that is none.
    AttentionExtents bounded = e;
    bounded.hasBounds = true;
    for (const Sm90AttentionKnobs &own : {packed, apart}) {
      add(subjects, documentAttention(own.packed == 1 ? bounded : e, DType::f16, true), own);
      subjects.back().segments = emulate::segmentsOf(e.b, e.k, 40);
      add(subjects, documentAttention(own.packed == 1 ? e : bounded, DType::bf16), own);
      subjects.back().segments = emulate::segmentsOf(e.b, e.k, 96);
    }
    add(subjects, relativeAttention(e, DType::f16), packed);
  }
  // Masks of the heads of a group that differ.
  FusedAttention byHead("keys_of_head", {.b = 1, .h = 2, .g = 3, .j = 20, .k = 203}, DType::f16);
  const int lengths = byHead.input("lengths", "hg", DType::i32);
  add(subjects, byHead.build(byHead.padding(byHead.scores(), lengths, {1, 2})), knobs(64, 1, 3, 4),
      {0, 67, 134, 201, 64, 131});
  // Pages, which are those of the head that a split is of.
  add(subjects,
      cachedAttention(
          {.b = 2, .h = 2, .g = 4, .j = 9, .k = 176, .p = 64, .w = 64, .page = 16, .pages = 22},
          DType::f16),
      knobs(64, 1, 3, 2), {0, 77});
  // The output leaves through the place of the queries.
  Sm90AttentionKnobs widest = knobs(128, 1, 2, 1);
  widest.tileKeys = 96, widest.queryStages = 1;
  const Kernel wide =
      plainAttention({.h = 1, .g = 6, .j = 30, .k = 259, .p = 192, .w = 192}, DType::bf16, true);
  const AttentionProblem problem = valueOrThrow(
      attentionProblem(wide, attentionRegion(wide).value(), configurationOf(wide, widest, 0)));
  REQUIRE(sm90AttentionStaysInQ(problem, widest));
  add(subjects, wide, widest);
  for (const ScoreKind scores : adversarialScores) {
    add(subjects,
        plainAttention({.h = 2, .g = 4, .j = 17, .k = 203, .p = 64, .w = 64}, DType::f16, true),
        knobs(64, 1, 4, 3));
    subjects.back().scores = scores;
  }
  checkAll("sm90_attention_splits", subjects);
}

TEST_CASE("queries that TMA has brought are turned once, by whoever reads them") {
  std::vector<Subject> subjects;
  const RotaryForm forms[] = {{},
                              {.isHalved = false},
                              {.isReverse = true},
                              {.turned = 16},
                              {.isHalved = false, .turned = 24},
                              {.factor = 8, .isStretched = true}};
  // Several tiles a block, so that stages of queries come around; extents that cut tiles.
  const AttentionExtents odd{.b = 2, .h = 2, .g = 3, .j = 150, .k = 93, .p = 32, .w = 40};
  int number = 0;
  for (const RotaryForm &form : forms)
    for (const int tileQueries : {64, 128, 192}) {
      const bool isSecond = ++number % 2 == 0;
      add(subjects, rotatedAttention(odd, isSecond ? DType::bf16 : DType::f16, form, isSecond),
          {.tileQueries = tileQueries,
           .tileKeys = 48,
           .queryStages = isSecond ? 2 : 1,
           .ordered = tileQueries > 64 && isSecond ? 1 : 0,
           .headGroup = isSecond ? 6 : 0,
           .blocks = 2});
    }
  // Partners in another panel of columns, and pairs that fill a part of the threads.
  for (const int64_t width : {16, 48, 80, 128, 256})
    for (const bool isHalved : {false, true})
      add(subjects,
          rotatedAttention({.h = 1, .j = 70, .k = 40, .p = width, .w = 24}, DType::f16,
                           {.isHalved = isHalved}, isHalved),
          {.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 1});
  // Consumers that share rows; the output leaves through the place of the queries.
  for (const int consumers : {2, 3})
    add(subjects, rotatedAttention(odd, DType::bf16, {}, consumers == 2, true),
        {.tileQueries = 64,
         .tileKeys = 32,
         .stages = consumers,
         .queryStages = consumers - 1,
         .ordered = 0,
         .keyConsumers = consumers,
         .blocks = 3});
  const Sm90AttentionKnobs narrow{
      .tileQueries = 64, .tileKeys = 64, .stages = 2, .ordered = 0, .keyConsumers = 2, .blocks = 1};
  const Kernel wide = rotatedAttention({.h = 1, .j = 150, .k = 99, .p = 256, .w = 256}, DType::f16,
                                       {.isHalved = false});
  const AttentionProblem problem = valueOrThrow(
      attentionProblem(wide, attentionRegion(wide).value(), configurationOf(wide, narrow, 0)));
  REQUIRE(sm90AttentionStaysInQ(problem, narrow));
  add(subjects, wide, narrow);
  // Caches: rows of one head and of packed ones, keys in pages and in splits.
  for (const int packed : {0, 1})
    for (const int splits : {1, 3}) {
      const Sm90AttentionKnobs knobs{.tileQueries = packed == 1 ? 128 : 64,
                                     .tileKeys = 32,
                                     .queryStages = splits == 1 ? 2 : 1,
                                     .ordered = 0,
                                     .packed = packed,
                                     .splits = splits,
                                     .blocks = 3};
      add(subjects,
          rotatedCachedAttention({.b = 2, .h = 2, .g = 3, .j = 25, .k = 203, .p = 32, .w = 72},
                                 DType::f16, {.isHalved = splits == 1}),
          knobs, {3, 170});
      add(subjects,
          rotatedCachedAttention(
              {.b = 2, .h = 2, .g = 4, .j = 9, .k = 176, .p = 64, .w = 64, .page = 16, .pages = 22},
              DType::bf16, {}),
          knobs, {0, 77});
    }
  // Packed tokens: rows behind the last one have no start to be read.
  const AttentionExtents tokens{
      .b = 4, .h = 2, .g = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 100};
  for (const int tileQueries : {64, 128})
    add(subjects, rotatedPackedAttention(tokens, DType::f16, {.isHalved = tileQueries == 64}, true),
        {.tileQueries = tileQueries,
         .tileKeys = 48,
         .queryStages = tileQueries / 64,
         .ordered = 0,
         .blocks = 3},
        {70, 0, 1, 29}, {0, 70, 70, 71, 100});
  checkAll("sm90_attention_rotated", subjects);
}

TEST_CASE("attention over packed tokens reads and writes those of each sequence alone") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs one{.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 3},
      two{.tileQueries = 128, .tileKeys = 48, .stages = 2, .queryStages = 1, .blocks = 2},
      shared{.tileQueries = 64,
             .tileKeys = 64,
             .queryStages = 2,
             .ordered = 0,
             .residents = 3,
             .blocks = 4};
  const AttentionExtents e{.b = 4, .h = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 330};
  // Tiles that end within a sequence, a sequence of one token, one of none, one at full length.
  const std::vector<double> lengths = {70, 0, 1, 150}, offsets = {0, 70, 70, 71, 221};
  add(subjects, packedAttention(e, DType::f16, true), one, lengths, offsets);
  add(subjects, packedAttention(e, DType::bf16, true, true), two, lengths, offsets);
  add(subjects, packedAttention(e, DType::f16, true), shared, lengths, offsets);
  // Keys behind the last one count, as zeros: nothing hides them.
  add(subjects, packedAttention(e, DType::f16, false), one, {}, offsets);
  // Rows of no sequence in front, and of one that is cut at its bound.
  add(subjects, packedAttention(e, DType::f16, false), one, {}, {13, 40, 40, 241, 300});
  // Groups of heads; two panels of columns; lengths that are none of the offsets'.
  add(subjects,
      packedAttention({.b = 3, .h = 2, .g = 2, .j = 80, .k = 80, .p = 40, .w = 72, .tokens = 100},
                      DType::bf16, true, true),
      one, {30, 200, 9}, {0, 40, 87, 100});
  // More sequences than a warp has lanes; dropout by padded coordinates.
  std::vector<double> many = {0}, counts;
  for (int i = 0; i < 35; ++i) {
    counts.push_back(double(i * 7 % 13));
    many.push_back(many.back() + counts.back());
  }
  add(subjects,
      packedAttention({.b = 35, .h = 1, .j = 12, .k = 12, .p = 32, .w = 32, .tokens = 420},
                      DType::f16, true, false, Dropout{.p = 0.3, .stream = 3}),
      one, counts, many);
  checkAll("sm90_attention_packed", subjects);
}

TEST_CASE("attention that ends at the tokens of a sequence needs no mask of them") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs one{.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 3},
      two{.tileQueries = 128, .tileKeys = 48, .stages = 2, .queryStages = 1, .blocks = 2},
      three{.tileQueries = 192, .tileKeys = 64, .queryStages = 2, .blocks = 2},
      inTurn{.tileQueries = 64,
             .tileKeys = 32,
             .stages = 4,
             .ordered = 0,
             .keyConsumers = 2,
             .blocks = 3};
  const AttentionExtents e{.b = 4, .h = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 330};
  // Tiles that end within a sequence, a sequence of one token, one of none, one at full length.
  const std::vector<double> lengths = {70, 0, 1, 150}, offsets = {0, 70, 70, 71, 221};
  for (const bool isUnread : {false, true})
    for (const Sm90AttentionKnobs &knobs : {one, two, three, inTurn}) {
      add(subjects, endedAttention(e, DType::f16, isUnread), knobs, lengths, offsets);
      add(subjects, endedAttention(e, DType::bf16, isUnread, true), knobs, lengths, offsets);
    }
  add(subjects, endedAttention(e, DType::f16, false, true, std::nullopt, true), two, lengths,
      offsets);
  // One sequence, of which tiles are counted without an order: cut, whole, of no token.
  for (const double tokens : {70.0, 150.0, 0.0}) {
    const AttentionExtents single{
        .b = 1, .h = 2, .g = 2, .j = 150, .k = 150, .p = 40, .w = 72, .tokens = 150};
    add(subjects, endedAttention(single, DType::f16, true), one, {tokens}, {0, tokens});
    add(subjects, endedAttention(single, DType::bf16, false, true), two, {tokens}, {0, tokens});
  }
  // More sequences than a warp has lanes; dropout by padded coordinates.
  std::vector<double> many = {0}, counts;
  for (int i = 0; i < 35; ++i) {
    counts.push_back(double(i * 7 % 13));
    many.push_back(many.back() + counts.back());
  }
  add(subjects,
      endedAttention({.b = 35, .h = 1, .j = 12, .k = 12, .p = 32, .w = 32, .tokens = 420},
                     DType::f16, true, false, Dropout{.p = 0.3, .stream = 3}),
      one, counts, many);
  for (const Subject &subject : subjects) {
    const auto emitted = codegen::emit(subject.kernel, subject.configuration, "sm_90a");
    INFO(emitted.readable);
    CHECK(emitted.text.find("endsAtTokens = true") != std::string::npos);
    CHECK(emitted.text.find("loadOne(lengths") == std::string::npos);
    for (const codegen::Parameter &parameter : test::nonEmpty(emitted.parameters))
      if (parameter.kind == codegen::Parameter::Kind::dropoutStream)
        CHECK(codegen::numberOf(parameter, subject.kernel) == 3);
  }
  checkAll("sm90_attention_ended", subjects);
}

TEST_CASE("logarithms of sums of packed tokens are those of each sequence, and zero elsewhere") {
  std::vector<Subject> subjects;
  const Sm90AttentionKnobs one{.tileQueries = 64, .tileKeys = 32, .ordered = 0, .blocks = 3},
      two{.tileQueries = 128, .tileKeys = 48, .stages = 2, .queryStages = 1, .blocks = 2};
  const AttentionExtents e{.b = 4, .h = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 330};
  const auto packed = [](const AttentionExtents &extents, DType type, bool isPadded, bool isCausal,
                         const std::optional<Dropout> &dropout = std::nullopt) {
    return packedAttention(extents, type, isPadded, isCausal, dropout, true);
  };
  // Tiles that end within a sequence, a sequence of one token, one of none, one at full length.
  const std::vector<double> lengths = {70, 0, 1, 150}, offsets = {0, 70, 70, 71, 221};
  for (const Sm90AttentionKnobs &knobs : {one, two}) {
    add(subjects, packed(e, DType::f16, true, true), knobs, lengths, offsets);
    // Rows of no sequence in front, and of one that is cut at its bound.
    add(subjects, packed(e, DType::bf16, false, false), knobs, {}, {13, 40, 40, 241, 300});
    add(subjects, packed(e, DType::f16, true, false, Dropout{.p = 0.3, .stream = 3}), knobs,
        lengths, offsets);
  }
  add(subjects,
      packed({.b = 3, .h = 2, .g = 2, .j = 80, .k = 80, .p = 40, .w = 72, .tokens = 100},
             DType::bf16, true, true),
      one, {30, 200, 9}, {0, 40, 87, 100});
  checkAll("sm90_attention_packed_sums", subjects);
}

TEST_CASE("what is no number reaches no row of another tile that masks hide it from") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 2, .h = 1, .j = 150, .k = 270, .p = 32, .w = 24};
  const Sm90AttentionKnobs one{.tileQueries = 64, .tileKeys = 64, .ordered = 0, .blocks = 3},
      two{.tileQueries = 128, .tileKeys = 32, .queryStages = 2, .blocks = 2};
  for (const emulate::PoisonedAttention &subject : emulate::poisonedForwards(e, DType::f16))
    for (const Sm90AttentionKnobs &knobs : {one, two}) {
      add(subjects, subject.kernel, knobs, subject.lengths);
      subjects.back().poison = subject.poison;
    }
  checkAll("sm90_attention_poison", subjects);
}
