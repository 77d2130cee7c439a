// Fused attention by mma.sync on the host, down to its instructions: every tile of the family on
// extents that cut it everywhere, all head dimensions, masks that leave rows and tiles empty, score
// ops, groups of heads, layouts; of halves, and of f32 that is read as tf32. Compared with single
// elements in fp64.
#include "codegen/families/attention/AttentionDropout.h"
#include "codegen/families/attention/AttentionLayouts.h"
#include "codegen/families/attention_sm80/Sm80AttentionTile.h"
#include "kernel/Error.h"
#include "tests/emulate/AttentionDocuments.h"
#include "tests/emulate/AttentionPages.h"
#include "tests/emulate/AttentionScores.h"
#include "tests/emulate/AttentionTokenStarts.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/emulate/PoisonedAttentions.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleTf32.h"

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
Configuration configurationOf(const Kernel &kernel, const Sm80AttentionKnobs &knobs,
                              size_t number) {
  const AttentionRegion region = attentionRegion(kernel).value();
  const std::vector<LayoutTuple> tuples = attentionTuples(kernel, region);
  for (size_t n = 0; n < tuples.size(); ++n) {
    const Configuration configuration =
        toConfiguration(kernel, tuples[(number + n) % tuples.size()], knobs);
    const auto problem = attentionProblem(kernel, region, configuration);
    if (problem && sm80AttentionLayoutRejection(*problem).empty() &&
        attentionDropoutRejection(kernel, region, *problem).empty())
      return configuration;
  }
  throw Error::checkFailed("no layouts");
}

void add(std::vector<Subject> &subjects, const Kernel &kernel, const Sm80AttentionKnobs &knobs,
         const std::vector<double> &lengths = {}, const std::vector<double> &offsets = {}) {
  subjects.push_back({.kernel = kernel,
                      .configuration = configurationOf(kernel, knobs, 37 * subjects.size()),
                      .lengths = lengths,
                      .offsets = offsets});
}

/// Packed tokens in front of the first one and behind the last one.
void poisonUnused(const Subject &subject,
                  std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
  const auto packed = attentionRegion(subject.kernel).value().packed;
  for (size_t input = 0; packed && input < subject.kernel.inputs.size(); ++input) {
    const std::vector<AxisId> &axes =
        subject.kernel.values[size_t(subject.kernel.inputs[input])].axes;
    for (const int tokens : {packed->q, packed->k, packed->v})
      if (const auto along = std::ranges::find(axes, tokens); along != axes.end())
        tensors[input]->forEach([&](std::span<const int64_t> at) {
          const int64_t token = at[size_t(along - axes.begin())];
          if (double(token) < subject.offsets.front() || double(token) >= subject.offsets.back())
            reference::storeElement(tensors[input]->type, tensors[input]->at(at),
                                    emulate::notNumber(token));
        });
  }
}

void checkAll(const std::string &name, std::vector<Subject> &subjects,
              emulate::Rounding rounding = emulate::Rounding::ofEach) {
  std::vector<emulate::Source> sources;
  for (Subject &subject : subjects) {
    subject.emitted = codegen::emit(subject.kernel, subject.configuration, "sm_80");
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  }
  const emulate::HostLibrary built(name, sources, emulate::DeviceHeaders::standIns, rounding);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject &subject = subjects[i];
    INFO(subject.kernel.name << ", " << describe(subject.kernel, subject.configuration.knobs)
                             << "\n"
                             << subject.emitted.readable);
    const auto fill = [&](size_t input, const emulate::Tensor &tensor) {
      const std::string &own = subject.kernel.values[size_t(subject.kernel.inputs[input])].name;
      if (emulate::fillScores(subject.scores, own, tensor)) return true;
      size_t place = 0;
      if (tensor.type == DType::f32) {  // all bits of the fraction: a product traps on them
        tensor.forEach([&](std::span<const int64_t> at) {
          const double element = emulate::elementOf(input, int64_t(place++), true, false);
          reference::storeElement(tensor.type, tensor.at(at), element * (1 + 0x1.2345p-9));
        });
        return true;
      }
      if (own == "token_starts") {
        emulate::fillTokenStarts(subject.offsets, tensor);
        return true;
      }
      if (own != "lengths" && own != "offsets") return false;
      const std::vector<double> &words = own == "lengths" ? subject.lengths : subject.offsets;
      tensor.forEach([&](std::span<const int64_t> at) {
        reference::storeElement(tensor.type, tensor.at(at), words.at(place++));
      });
      return true;
    };
    emulate::checkEmitted(
        subject.kernel, subject.configuration, subject.emitted, built.kernel(i),
        subject.emitted.launch.grid, subject.emitted.launch.block, fill,
        [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
          emulate::fillPages(subject.kernel, subject.lengths, tensors);
          emulate::fillDocuments(subject.kernel, subject.segments, tensors);
          emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::fill, tensors);
          poisonUnused(subject, tensors);
        },
        [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
          emulate::fillPages(subject.kernel, subject.lengths, tensors, emulate::PoisonStep::remove);
          emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::remove,
                               tensors);
          if (subject.areMeans) emulate::checkMeans(subject.kernel, subject.scores, tensors);
        },
        emulate::mayDiffer(subject.kernel, subject.poison));
  }
}

constexpr Sm80AttentionKnobs smallTile{.tileQueries = 64, .tileKeys = 32, .stages = 2};

}  // namespace

TEST_CASE("attention of every tile, and of extents that it divides or does not") {
  std::vector<Subject> subjects;
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 171, .p = 32, .w = 48},
      whole{.b = 2, .h = 1, .j = 128, .k = 192, .p = 64, .w = 64};
  for (const int tileQueries : {64, 128})
    for (const int tileKeys : {32, 64})
      for (const int stages : {2, 3, 4}) {
        const Sm80AttentionKnobs knobs{tileQueries, tileKeys, stages};
        add(subjects, plainAttention(cut, DType::f16, stages == 2), knobs);
        add(subjects, causalAttention(whole, DType::bf16, stages == 3), knobs);
      }
  checkAll("sm80_attention_tiles", subjects);
}

TEST_CASE("attention of every head dimension") {
  std::vector<Subject> subjects;
  for (const int64_t width : {8, 16, 24, 40, 64, 72, 80, 96, 128, 136, 192, 256})
    for (const DType type : {DType::f16, DType::bf16})
      add(subjects, plainAttention({.h = 1, .j = 21, .k = 40, .p = width, .w = width}, type),
          smallTile);
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{192, 128}, {40, 136}, {64, 8}})
    add(subjects, plainAttention({.h = 1, .j = 70, .k = 33, .p = p, .w = w}, DType::f16),
        smallTile);
  checkAll("sm80_attention_dimensions", subjects);
}

TEST_CASE("masked attention skips empty tiles, and rows without keys give zeros") {
  std::vector<Subject> subjects;
  for (const auto &[j, k] :
       {std::pair<int64_t, int64_t>{100, 100}, {70, 200}, {200, 70}, {1, 130}}) {
    const AttentionExtents e{.b = 3, .h = 2, .j = j, .k = k, .p = 16, .w = 16};
    // More queries than keys: the first ones see none.
    add(subjects, causalAttention(e, DType::f16, true), smallTile);
    add(subjects, windowAttention(e, DType::bf16, 20, 7), smallTile);
    add(subjects, windowAttention(e, DType::bf16, 12, 12, 9), smallTile);
    add(subjects, windowAttention(e, DType::f16, 150, 0), {.tileQueries = 128});
    add(subjects, paddedAttention(e, DType::f16), smallTile, {0, 1, double(k)});
    add(subjects, paddedAttention(e, DType::bf16, true), smallTile, {double(k) - 30, 33, 0});
    if (j == k) add(subjects, attentionOfTokens(e, DType::f16), smallTile, {0, 37, double(k)});
  }
  checkAll("sm80_attention_masks", subjects);
}

TEST_CASE("block masks of all heads and of each, with rows and columns without a tile") {
  std::vector<Subject> subjects;
  // A table of 5 x 9 tiles whose second row and fourth column are empty.
  const std::string holes = "table(block=32,heads=1,rows=5,columns=9,bits=1500001717f0601)";
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 270, .p = 16, .w = 16};
  add(subjects, blockAttention(cut, DType::f16, holes, false, false, true), smallTile);
  add(subjects, blockAttention(cut, DType::bf16, holes, false, true), {.tileQueries = 128});
  add(subjects,
      blockAttention(cut, DType::f16, "random(block=16,density=0.03,seed=2,heads=each)", true),
      smallTile);
  add(subjects,
      blockAttention({.b = 2, .h = 1, .g = 2, .j = 130, .k = 130, .p = 16, .w = 16}, DType::bf16,
                     "bigbird(block=16,window=3,global=2,random=1,seed=0,heads=each)", true, true),
      smallTile);
  // Tiles that see most come first, of all heads, with their splits; the others head by head.
  const std::string global = "longformer(block=32,window=1,global=1)";
  for (const int64_t g : {1, 2})
    for (const int splits : {1, 3}) {
      const AttentionExtents e{.b = 2, .h = 3, .g = g, .j = 300, .k = 300, .p = 16, .w = 16};
      add(subjects, blockAttention(e, g == 1 ? DType::f16 : DType::bf16, global),
          {.tileQueries = 32, .tileKeys = 32, .packed = int(g - 1), .splits = splits});
    }
  add(subjects,
      inTf32(blockAttention({.b = 2, .h = 2, .j = 300, .k = 300, .p = 16, .w = 16}, DType::f32,
                            global)),
      {.tileQueries = 32, .tileKeys = 32});
  checkAll("sm80_attention_block_masks", subjects);
}

TEST_CASE("a document mask with bounds skips tiles between documents, in any order of segments") {
  std::vector<Subject> subjects;
  for (const int64_t run : {1, 40, 96}) {
    const AttentionExtents e{
        .b = 2, .h = 1, .g = 2, .j = 131, .k = 203, .p = 24, .w = 40, .hasBounds = true};
    add(subjects, documentAttention(e, DType::f16, run == 40), smallTile);
    subjects.back().segments = emulate::segmentsOf(e.b, e.k, run);
  }
  const AttentionExtents last{
      .b = 1, .h = 2, .j = 70, .k = 258, .p = 16, .w = 16, .hasBounds = true};
  for (const int tileKeys : {32, 64}) {
    add(subjects, documentAttention(last, DType::bf16), {.tileQueries = 128, .tileKeys = tileKeys});
    subjects.back().segments = emulate::hiddenDocuments(last.k, 160);
    subjects.back().poison = emulate::unreadKeys(0, 128);
  }
  checkAll("sm80_attention_documents", subjects);
}

TEST_CASE("score ops see the coordinates and operands of every score") {
  std::vector<Subject> subjects;
  for (const DType type : {DType::f16, DType::bf16}) {
    const AttentionExtents e{.b = 2, .h = 2, .g = 3, .j = 75, .k = 90, .p = 24, .w = 40};
    add(subjects, biasedAttention(e, type), smallTile);
    add(subjects, cappedAttention(e, type, true), smallTile);
  }
  checkAll("sm80_attention_scores", subjects);
}

TEST_CASE("biases by position and documents") {
  std::vector<Subject> subjects;
  const AttentionExtents e{
      .b = 2, .h = 3, .g = 2, .j = 75, .k = 90, .p = 24, .w = 40, .distance = 20};
  for (const DType type : {DType::f16, DType::bf16}) {
    add(subjects, alibiAttention(e, type), smallTile);
    add(subjects, relativeAttention(e, type, type == DType::bf16), smallTile);
    add(subjects, documentAttention(e, type, type == DType::f16), smallTile);
  }
  // Distances beyond the table on both sides, of odd numbers of queries and keys.
  add(subjects, disentangledAttention(e, DType::f16), smallTile);
  add(subjects, disentangledAttention(e, DType::bf16, true), {.tileQueries = 128, .tileKeys = 32},
      {90, 37});
  checkAll("sm80_attention_positions", subjects);
}

TEST_CASE("adversarial scores: equal, one huge, as large as f16 holds, all low, tiny") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 1, .h = 1, .j = 75, .k = 133, .p = 64, .w = 64};
  for (const ScoreKind scores : adversarialScores) {
    for (const DType type : {DType::f16, DType::bf16}) {
      add(subjects, plainAttention(e, type, true), smallTile);
      subjects.back().scores = scores;
      // Most scores are -inf.
      add(subjects, windowAttention(e, type, 3, 0),
          {.tileQueries = 16, .tileKeys = 64, .stages = 2, .splits = 2});
      subjects.back().scores = scores;
    }
    // Of tf32, scores of 6e4 are uncertain by more than any exponential bears.
    if (scores == ScoreKind::extreme || scores == ScoreKind::lowest) continue;
    add(subjects, inTf32(plainAttention(e, DType::f32, true)), smallTile);
    subjects.back().scores = scores;
  }
  checkAll("sm80_attention_adversarial", subjects);
}

TEST_CASE("a maximum that stays leaves sums of other blocks of keys as they are") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 1, .h = 1, .g = 2, .j = 40, .k = 1100, .p = 24, .w = 24};
  for (const ScoreKind scores : {ScoreKind::extreme, ScoreKind::lowest})
    for (const DType type : {DType::f16, DType::bf16})
      // In one loop, by warps that share rows, and in splits of blocks.
      for (const Sm80AttentionKnobs &knobs :
           {smallTile, Sm80AttentionKnobs{16, 32, 2},
            Sm80AttentionKnobs{.tileQueries = 16, .tileKeys = 32, .stages = 2, .splits = 5}}) {
        add(subjects, plainAttention(e, type, true), knobs);
        subjects.back().scores = scores;
        subjects.back().areMeans = true;
      }
  checkAll("sm80_attention_means", subjects, emulate::Rounding::contracted);
}

TEST_CASE("probabilities are dropped by the coordinates of each, in every tile") {
  std::vector<Subject> subjects;
  const AttentionExtents odd{.b = 2, .h = 2, .g = 3, .j = 75, .k = 93, .p = 24, .w = 40},
      square{.b = 1, .h = 2, .j = 131, .k = 131, .p = 16, .w = 16},
      few{.b = 2, .h = 3, .j = 5, .k = 333, .p = 24, .w = 40},
      one{.b = 1, .h = 1, .j = 1, .k = 1, .p = 8, .w = 8};
  const Dropout quarter{.p = 0.25, .stream = 3}, most{.p = 0.9, .stream = 3};
  for (const int tileKeys : {32, 64})
    for (const int tileQueries : {64, 128}) {
      const Sm80AttentionKnobs knobs{tileQueries, tileKeys, 2};
      add(subjects, droppedAttention(odd, DType::f16, quarter, false, true), knobs);
      add(subjects, droppedAttention(square, DType::bf16, most, true, tileKeys == 64), knobs);
      // Warps and blocks that share rows.
      for (const int splits : {1, 3})
        add(subjects, droppedAttention(few, DType::f16, quarter, splits == 3, true),
            {.tileQueries = tileQueries / 4, .tileKeys = tileKeys, .stages = 3, .splits = splits});
    }
  add(subjects, droppedAttention(one, DType::f16, quarter), smallTile);
  // The part of an outer axis that comes behind others.
  Kernel behind = droppedAttention(odd, DType::bf16, quarter);
  behind.body[attentionRegion(behind)->fold].attributes["outer"] = int64_t(3);
  add(subjects, behind, smallTile);
  for (const int tileQueries : {32, 64}) {
    const Sm80AttentionKnobs knobs{tileQueries, 32, 2};
    add(subjects, inTf32(droppedAttention(odd, DType::f32, quarter, false, true)), knobs);
    add(subjects, inTf32(droppedAttention(few, DType::f32, most, true)),
        {.tileQueries = 16, .tileKeys = tileQueries, .stages = 2, .splits = tileQueries / 16 - 1});
  }
  checkAll("sm80_attention_dropped", subjects);
}

TEST_CASE("heads of a group share keys and values, one query has them as rows") {
  std::vector<Subject> subjects;
  add(subjects,
      plainAttention({.b = 2, .h = 2, .g = 4, .j = 40, .k = 50, .p = 16, .w = 24}, DType::f16,
                     true),
      smallTile);
  add(subjects,
      causalAttention({.b = 1, .h = 3, .g = 2, .j = 65, .k = 70, .p = 16, .w = 16}, DType::bf16),
      smallTile);
  // Decoding: the heads of a group are the queries.
  add(subjects,
      plainAttention({.b = 2, .h = 2, .g = 8, .j = 1, .k = 300, .p = 32, .w = 32}, DType::f16,
                     true),
      {.tileKeys = 64});
  add(subjects, plainAttention({.b = 1, .h = 1, .j = 1, .k = 1, .p = 8, .w = 8}, DType::f16),
      smallTile);
  checkAll("sm80_attention_groups", subjects);
}

namespace {

/// Tiles of few rows, packed where heads share keys, with so many splits.
void addDecoding(std::vector<Subject> &subjects, const Kernel &kernel, int splits,
                 const std::vector<double> &lengths = {}) {
  const Configuration any = configurationOf(kernel, Sm80AttentionKnobs{}, 0);
  const AttentionProblem problem =
      valueOrThrow(attentionProblem(kernel, attentionRegion(kernel).value(), any));
  Sm80AttentionKnobs knobs{.tileQueries = subjects.size() % 3 == 2 ? 32 : 16,
                           .tileKeys = subjects.size() % 2 == 0 ? 32 : 64,
                           .stages = 2 + int(subjects.size() % 3),
                           .packed = problem.headsOfGroup > 1 ? 1 : 0,
                           .splits = splits};
  const int64_t tiles = (problem.keys + knobs.tileKeys - 1) / knobs.tileKeys;
  knobs.splits = int(std::min<int64_t>(splits, tiles));
  REQUIRE(sm80AttentionTileRejection(problem, knobs, {.hasValueOps = true}) == "");
  add(subjects, kernel, knobs, lengths);
}

}  // namespace

TEST_CASE("queries are turned when they are loaded, in every style and by every position") {
  std::vector<Subject> subjects;
  const RotaryForm forms[] = {{},
                              {.isHalved = false},
                              {.isReverse = true},
                              {.turned = 16},
                              {.isHalved = false, .turned = 24},
                              {.factor = 8, .isStretched = true}};
  const AttentionExtents odd{.b = 2, .h = 2, .g = 3, .j = 75, .k = 93, .p = 32, .w = 40};
  for (const RotaryForm &form : forms)
    for (const bool isLong : {false, true})
      add(subjects, rotatedAttention(odd, isLong ? DType::bf16 : DType::f16, form, isLong, isLong),
          {.tileQueries = isLong ? 128 : 64, .tileKeys = 32, .stages = isLong ? 3 : 2});
  // Pairs fill a part of the threads, or of the rows' padding.
  for (const int64_t width : {16, 48, 80, 128, 256})
    for (const bool isHalved : {false, true})
      add(subjects,
          rotatedAttention({.h = 1, .j = 70, .k = 40, .p = width, .w = 16}, DType::f16,
                           {.isHalved = isHalved}, isHalved),
          smallTile);
  add(subjects,
      rotatedAttention({.h = 1, .j = 70, .k = 40, .p = 40, .w = 16}, DType::bf16, {.turned = 16}),
      smallTile);
  // Caches: of each batch element other positions, rows of packed heads, warps and splits of keys.
  for (const int64_t group : {1, 4})
    for (const int splits : {1, 3})
      for (const int64_t queries : {1, 5}) {
        const AttentionExtents e{
            .b = 3, .h = 2, .g = group, .j = queries, .k = 300, .p = 32, .w = 24};
        addDecoding(subjects, rotatedCachedAttention(e, DType::f16, {}), splits, {0, 77, 295});
        addDecoding(subjects, rotatedCachedAttention(e, DType::bf16, {.isHalved = false}), splits,
                    {290, 33, 1});
      }
  add(subjects,
      rotatedCachedAttention({.b = 2, .h = 1, .g = 2, .j = 70, .k = 160, .p = 64, .w = 16},
                             DType::f16, {}),
      smallTile, {90, 3});
  AttentionExtents paged{
      .b = 3, .h = 2, .g = 4, .j = 3, .k = 336, .p = 64, .w = 64, .page = 16, .pages = 63};
  addDecoding(subjects, rotatedCachedAttention(paged, DType::f16, {}), 3, {0, 77, 333});
  // Packed tokens, in front of the first one and behind the last one some of no sequence.
  const AttentionExtents tokens{
      .b = 3, .h = 2, .g = 2, .j = 70, .k = 70, .p = 32, .w = 16, .tokens = 120};
  for (const bool isHalved : {false, true})
    add(subjects, rotatedPackedAttention(tokens, DType::f16, {.isHalved = isHalved}, isHalved),
        smallTile, {70, 5, 33}, {2, 72, 77, 110});
  checkAll("sm80_attention_rotated", subjects);
}

TEST_CASE("rows of all heads of a group are one tile, and several blocks share its keys") {
  std::vector<Subject> subjects;
  for (const int64_t group : {1, 3, 4})
    for (const int64_t queries : {1, 5, 13})
      for (const int splits : {1, 2, 5}) {
        const AttentionExtents e{
            .b = 2, .h = 2, .g = group, .j = queries, .k = 333, .p = 24, .w = 40};
        addDecoding(subjects, plainAttention(e, DType::f16, true), splits);
        addDecoding(subjects, causalAttention(e, DType::bf16, queries == 5), splits);
      }
  checkAll("sm80_attention_decoding", subjects);
}

TEST_CASE("splits without a key they see leave no trace, rows without any give zeros") {
  std::vector<Subject> subjects;
  for (const int64_t group : {1, 4}) {
    const AttentionExtents e{.b = 3, .h = 2, .g = group, .j = 3, .k = 300, .p = 16, .w = 16};
    for (const int splits : {3, 9}) {
      addDecoding(subjects, windowAttention(e, DType::f16, 20, 7), splits);
      addDecoding(subjects, windowAttention(e, DType::bf16, 130, 0), splits);
      addDecoding(subjects, paddedAttention(e, DType::f16), splits, {0, 1, 300});
      subjects.back().poison = emulate::keysBehind({0, 1, 300});
      addDecoding(subjects, paddedAttention(e, DType::bf16, true), splits, {270, 33, 0});
      subjects.back().poison = emulate::keysBehind({270, 33, 0});
      addDecoding(subjects, cachedAttention(e, DType::f16), splits, {0, 77, 297});
      subjects.back().poison = emulate::keysBehind({3, 80, 300});
      addDecoding(subjects, inTf32(paddedAttention(e, DType::f32)), splits, {0, 1, 290});
      subjects.back().poison = emulate::keysBehind({0, 1, 290});
      addDecoding(subjects, cappedAttention(e, DType::f16, true), splits);
      addDecoding(subjects, alibiAttention(e, DType::bf16), splits);
      AttentionExtents bounded = e;
      bounded.hasBounds = splits == 9;
      addDecoding(subjects, documentAttention(bounded, DType::f16, group == 4), splits);
      subjects.back().segments = emulate::segmentsOf(e.b, e.k, 40);
    }
    // More queries than keys: the first ones see none.
    addDecoding(
        subjects,
        causalAttention({.h = 2, .g = group, .j = 70, .k = 40, .p = 16, .w = 16}, DType::f16, true),
        2);
  }
  checkAll("sm80_attention_splits", subjects);
}

TEST_CASE("keys and values come from the pages that the table lists, and from no other") {
  std::vector<Subject> subjects;
  const auto add = [&](AttentionExtents e, DType type, int splits,
                       const std::vector<double> &lengths) {
    e.pages = e.b * (e.k / e.page);
    addDecoding(subjects, cachedAttention(e, type), splits, lengths);
  };
  for (const int64_t group : {1, 4})
    for (const int splits : {1, 3}) {
      // Tiles of several pages, of parts of several, of one.
      add({.b = 3, .g = group, .j = 3, .k = 336, .p = 64, .w = 64, .page = 16}, DType::f16, splits,
          {0, 77, 333});
      add({.b = 3, .g = group, .j = 1, .k = 336, .p = 24, .w = 40, .page = 48}, DType::bf16, splits,
          {47, 48, 200});
      add({.b = 2, .g = group, .j = 2, .k = 320, .p = 128, .w = 128, .page = 64}, DType::f16,
          splits, {300, 62});
      add({.b = 2, .g = group, .j = 5, .k = 512, .p = 16, .w = 16, .page = 256}, DType::f16, splits,
          {11, 250});
    }
  const AttentionExtents prefill{
      .b = 2, .h = 1, .j = 70, .k = 160, .p = 32, .w = 32, .page = 32, .pages = 10};
  for (const int tileKeys : {32, 64})
    ::add(subjects, cachedAttention(prefill, DType::f16),
          {.tileQueries = 64, .tileKeys = tileKeys, .stages = 2}, {0, 33});
  checkAll("sm80_attention_pages", subjects);
}

TEST_CASE("score ops and masks see the head and the query of every packed row") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 2, .h = 2, .g = 3, .j = 7, .k = 150, .p = 24, .w = 40};
  for (const int splits : {1, 4}) {
    addDecoding(subjects, biasedAttention(e, DType::f16), splits);
    FusedAttention factors("factor_of_head", e, DType::bf16);
    const int ofHead = factors.input("factors", "hg", DType::f32);
    const int product = factors.map("mul", "{0} * {1}", {factors.scores(), ofHead}, "product");
    addDecoding(subjects, factors.build(factors.causal(product)), splits);
    // A mask that differs among the heads of a group.
    FusedAttention byHead("keys_of_head", e, DType::f16);
    const int lengths = byHead.input("lengths", "hg", DType::i32);
    addDecoding(subjects, byHead.build(byHead.padding(byHead.scores(), lengths, {1, 2}), true),
                splits, {150, 0, 31, 64, 33, 149});
    addDecoding(subjects,
                blockAttention(e, DType::f16, "random(block=16,density=0.3,seed=1)", false, true),
                splits);
    addDecoding(subjects,
                blockAttention(e, DType::bf16, "random(block=32,density=0.3,seed=4,heads=each)",
                               true, false, true),
                splits);
  }
  checkAll("sm80_attention_packed_scores", subjects);
}

TEST_CASE("packed tiles of every number of rows have every head dimension") {
  std::vector<Subject> subjects;
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{8, 8},
                             {64, 64},
                             {72, 80},
                             {96, 128},
                             {128, 128},
                             {192, 128},
                             {256, 256}})
    for (const int tileQueries : {16, 32, 64, 128}) {
      const Kernel kernel =
          plainAttention({.h = 1, .g = 2, .j = 37, .k = 170, .p = p, .w = w}, DType::f16, true);
      const Sm80AttentionKnobs knobs{.tileQueries = tileQueries,
                                     .tileKeys = tileQueries < 64 && p <= 64 ? 128 : 32,
                                     .packed = 1,
                                     .splits = 2};
      const AttentionProblem problem = valueOrThrow(attentionProblem(
          kernel, attentionRegion(kernel).value(), configurationOf(kernel, knobs, 0)));
      if (sm80AttentionTileRejection(problem, knobs, {}).empty()) add(subjects, kernel, knobs);
      else CHECK(tileQueries == 128);
    }
  checkAll("sm80_attention_few_rows", subjects);
}

TEST_CASE("f32 is read as tf32: every tile, every head dimension, masks, score ops, groups") {
  std::vector<Subject> subjects;
  const auto addTf32 = [&](const Kernel &kernel, const Sm80AttentionKnobs &knobs,
                           const std::vector<double> &lengths = {}) {
    add(subjects, inTf32(kernel), knobs, lengths);
  };
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 171, .p = 32, .w = 48},
      odd{.b = 2, .h = 1, .g = 2, .j = 37, .k = 61, .p = 24, .w = 40};
  for (const int tileQueries : {32, 64, 128})
    for (const int tileKeys : {16, 32, 64}) {
      const int stages = 2 + int(subjects.size() % 3);
      addTf32(plainAttention(cut, DType::f32, stages == 2), {tileQueries, tileKeys, stages});
      addTf32(causalAttention(odd, DType::f32, stages == 3), {tileQueries, tileKeys, stages});
    }
  for (const int64_t width : {8, 16, 40, 64, 72, 128})
    addTf32(plainAttention({.h = 1, .j = 21, .k = 40, .p = width, .w = width}, DType::f32),
            smallTile);
  for (const int64_t width : {192, 256})
    addTf32(plainAttention({.h = 1, .j = 21, .k = 40, .p = width, .w = width}, DType::f32),
            {.tileQueries = 32, .tileKeys = 16, .stages = 2});
  for (const auto &[j, k] : {std::pair<int64_t, int64_t>{70, 200}, {200, 70}, {1, 130}}) {
    const AttentionExtents e{.b = 3, .h = 1, .j = j, .k = k, .p = 16, .w = 16};
    addTf32(causalAttention(e, DType::f32, true), smallTile);
    addTf32(windowAttention(e, DType::f32, 12, 12, 9), smallTile);
    addTf32(paddedAttention(e, DType::f32, true), smallTile, {double(k) - 30, 33, 0});
  }
  addTf32(biasedAttention(odd, DType::f32), smallTile);
  addTf32(cappedAttention(odd, DType::f32, true), smallTile);
  AttentionExtents far = odd;
  far.distance = 20;
  addTf32(relativeAttention(far, DType::f32, true), smallTile);
  addTf32(disentangledAttention(far, DType::f32), smallTile);
  checkAll("sm80_attention_tf32", subjects);
}

TEST_CASE("few queries of f32 that is read as tf32: packed heads, splits, pages") {
  std::vector<Subject> subjects;
  for (const int64_t group : {1, 4})
    for (const int splits : {1, 5}) {
      const AttentionExtents e{.b = 2, .h = 2, .g = group, .j = 5, .k = 333, .p = 24, .w = 40},
          wide{.h = 1, .g = group, .j = 3, .k = 100, .p = 32, .w = 48};
      addDecoding(subjects, inTf32(plainAttention(e, DType::f32, true)), splits);
      addDecoding(subjects, inTf32(causalAttention(wide, DType::f32)), splits);
      AttentionExtents paged{.b = 3, .g = group, .j = 3, .k = 336, .p = 32, .w = 24, .page = 48};
      paged.pages = paged.b * (paged.k / paged.page);
      addDecoding(subjects, inTf32(cachedAttention(paged, DType::f32)), splits, {0, 77, 333});
    }
  checkAll("sm80_attention_tf32_decoding", subjects);
}

TEST_CASE("attention over packed tokens reads and writes those of each sequence alone") {
  std::vector<Subject> subjects;
  const Sm80AttentionKnobs three{.tileQueries = 128, .tileKeys = 64, .stages = 3},
      joined{.tileQueries = 32, .tileKeys = 32, .stages = 2, .splits = 3},
      grouped{.tileQueries = 64, .tileKeys = 32, .stages = 2, .packed = 1, .splits = 2};
  const AttentionExtents e{.b = 4, .h = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 330},
      groups{.b = 3, .h = 2, .g = 2, .j = 80, .k = 80, .p = 40, .w = 72, .tokens = 100};
  // Tiles that end within a sequence, a sequence of one token, one of none, one at full length.
  const std::vector<double> lengths = {70, 0, 1, 150}, offsets = {0, 70, 70, 71, 221};
  for (const DType type : {DType::f16, DType::bf16}) {
    add(subjects, packedAttention(e, type, true), smallTile, lengths, offsets);
    add(subjects, packedAttention(e, type, true, true), three, lengths, offsets);
    add(subjects, packedAttention(e, type, true), joined, lengths, offsets);
    // Keys behind the last one count, as zeros: nothing hides them. Rows of no sequence in front,
    // and of one that is cut at its bound.
    add(subjects, packedAttention(e, type, false), smallTile, {}, {13, 40, 40, 241, 300});
    // Groups of heads, also as rows of one tile; lengths that are none of the offsets'.
    for (const Sm80AttentionKnobs &knobs : {smallTile, grouped})
      add(subjects, packedAttention(groups, type, true, true), knobs, {30, 200, 9},
          {0, 40, 87, 100});
    add(subjects, packedAttention(e, type, true, false, Dropout{.p = 0.3, .stream = 3}), smallTile,
        lengths, offsets);
  }
  // More sequences than there are tiles of one; tokens up to the last row.
  std::vector<double> many = {0}, counts;
  for (int i = 0; i < 35; ++i) {
    counts.push_back(double(i * 7 % 13));
    many.push_back(many.back() + counts.back());
  }
  add(subjects,
      packedAttention(
          {.b = 35, .h = 1, .j = 12, .k = 12, .p = 32, .w = 32, .tokens = int64_t(many.back())},
          DType::f16, true),
      smallTile, counts, many);
  // A table of tiles along positions of a sequence.
  FusedAttention blocks("packed_blocks", e, DType::f16);
  const int seen = blocks.blocks(blocks.scores(), "fixed(block=32,stride=3,summary=1)", false);
  add(subjects, blocks.build(blocks.causal(seen)), smallTile, {}, offsets);
  // f32 that is read as tf32.
  for (const Sm80AttentionKnobs &knobs :
       {Sm80AttentionKnobs{.tileQueries = 64, .tileKeys = 32, .stages = 2}, joined})
    add(subjects, inTf32(packedAttention(e, DType::f32, true)), knobs, lengths, offsets);
  add(subjects, inTf32(packedAttention(groups, DType::f32, false)), grouped, {}, {3, 43, 90, 97});
  checkAll("sm80_attention_packed", subjects);
}

TEST_CASE("logarithms of sums of packed tokens are those of each sequence, and zero elsewhere") {
  std::vector<Subject> subjects;
  const Sm80AttentionKnobs joined{.tileQueries = 32, .tileKeys = 32, .stages = 2, .splits = 3},
      grouped{.tileQueries = 64, .tileKeys = 32, .stages = 2, .packed = 1, .splits = 2};
  const AttentionExtents e{.b = 4, .h = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 330},
      groups{.b = 3, .h = 2, .g = 2, .j = 80, .k = 80, .p = 40, .w = 72, .tokens = 100};
  // Tiles that end within a sequence, a sequence of one token, one of none, one at full length.
  const std::vector<double> lengths = {70, 0, 1, 150}, offsets = {0, 70, 70, 71, 221};
  const auto packed = [](const AttentionExtents &extents, DType type, bool isPadded, bool isCausal,
                         const std::optional<Dropout> &dropout = std::nullopt) {
    return packedAttention(extents, type, isPadded, isCausal, dropout, true);
  };
  for (const DType type : {DType::f16, DType::bf16}) {
    add(subjects, packed(e, type, true, true), smallTile, lengths, offsets);
    add(subjects, packed(e, type, true, false), joined, lengths, offsets);
    // Rows of no sequence in front, and of one that is cut at its bound.
    add(subjects, packed(e, type, false, false), smallTile, {}, {13, 40, 40, 241, 300});
    for (const Sm80AttentionKnobs &knobs : {smallTile, grouped})
      add(subjects, packed(groups, type, true, true), knobs, {30, 200, 9}, {0, 40, 87, 100});
    add(subjects, packed(e, type, true, false, Dropout{.p = 0.3, .stream = 3}), smallTile, lengths,
        offsets);
  }
  add(subjects, inTf32(packed(e, DType::f32, true, true)), smallTile, lengths, offsets);
  checkAll("sm80_attention_packed_sums", subjects);
}

TEST_CASE("what is no number reaches no row of another tile that masks hide it from") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 2, .h = 1, .j = 150, .k = 270, .p = 16, .w = 16};
  const Sm80AttentionKnobs large{.tileQueries = 128, .tileKeys = 64, .stages = 2};
  for (const emulate::PoisonedAttention &subject : emulate::poisonedForwards(e, DType::f16))
    for (const Sm80AttentionKnobs &knobs : {smallTile, large}) {
      add(subjects, subject.kernel, knobs, subject.lengths);
      subjects.back().poison = subject.poison;
    }
  checkAll("sm80_attention_poison", subjects);
}
