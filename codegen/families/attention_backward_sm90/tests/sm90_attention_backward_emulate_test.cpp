// Fused attention backward by TMA and WGMMA on the host, down to the PTX of its device headers:
// tiles on extents that cut them, masks, head dimensions, groups of heads, dropout, and the order
// in which blocks add up the queries' gradients. Compared with single elements in fp64.
#include "codegen/families/attention_backward/AttentionBackwardLayouts.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardTile.h"
#include "kernel/Error.h"
#include "tests/emulate/AttentionDocuments.h"
#include "tests/emulate/AttentionScores.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/emulate/PoisonedAttentions.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

#include <fmt/format.h>

using namespace weft;
using namespace weft::samples;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  std::vector<double> lengths = {};   ///< of the input of that name
  std::vector<double> segments = {};  ///< of the input of that name
  emulate::Poison poison = {};        ///< what hidden elements hold that are no numbers
  ScoreKind scores = ScoreKind::usual;
  std::vector<double> offsets = {};  ///< of the input of that name
  codegen::EmittedKernel emitted = {};
};

/// Layouts by number among all that the family takes.
Configuration configurationOf(const Kernel &kernel, const Sm90AttentionBackwardKnobs &knobs,
                              size_t number) {
  const AttentionBackwardRegion region = attentionBackwardRegion(kernel).value();
  const std::vector<LayoutTuple> tuples = attentionBackwardTuples(kernel, region);
  for (size_t n = 0; n < tuples.size(); ++n) {
    const Configuration configuration =
        toConfiguration(kernel, tuples[(number + n) % tuples.size()], knobs);
    const auto problem = attentionBackwardProblem(kernel, region, configuration);
    if (problem && sm90AttentionBackwardLayoutRejection(*problem).empty()) return configuration;
  }
  throw Error::checkFailed("no layouts");
}

void add(std::vector<Subject> &subjects, const Kernel &kernel,
         const Sm90AttentionBackwardKnobs &knobs, const std::vector<double> &lengths = {},
         const std::vector<double> &offsets = {}) {
  subjects.push_back({.kernel = kernel,
                      .configuration = configurationOf(kernel, knobs, 37 * subjects.size()),
                      .lengths = lengths,
                      .offsets = offsets});
}

/// Of gradients apart: tiles of so many keys or queries, groups of two heads of keys.
Sm90AttentionBackwardKnobs apart(int rows, int blocks, int columns = 64) {
  return {.gradients = BackwardGradients::apart,
          .tileQueries = columns,
          .tileKeys = rows,
          .headGroup = 2,
          .blocks = blocks};
}

/// Tiles of one gradient, groups of two heads of keys.
Sm90AttentionBackwardKnobs single(int blocks, int columns = 64) {
  return {.gradients = BackwardGradients::single,
          .tileQueries = columns,
          .tileKeys = 128,
          .headGroup = 2,
          .blocks = blocks};
}

/// Whose probabilities overflow f16 where logarithms of sums are those of no row.
bool hasGreatScores(const Subject &subject) {
  constexpr int64_t mostColumns = 128;
  const AttentionBackwardRegion region = attentionBackwardRegion(subject.kernel).value();
  return attentionBackwardProblem(subject.kernel, region, subject.configuration)
             ->attention.headDim > mostColumns;
}

void checkAll(const std::string &name, std::vector<Subject> &subjects) {
  std::vector<emulate::Source> sources;
  for (Subject &subject : subjects) {
    subject.emitted = codegen::emit(subject.kernel, subject.configuration, "sm_90a");
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  }
  const emulate::HostLibrary built(name, sources, emulate::DeviceHeaders::translated);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject &subject = subjects[i];
    INFO(subject.kernel.name << ", " << describe(subject.kernel, subject.configuration.knobs)
                             << "\n"
                             << subject.emitted.readable);
    const auto fill = [&](size_t input, const emulate::Tensor &tensor) {
      const std::string &own = subject.kernel.values[size_t(subject.kernel.inputs[input])].name;
      if (own != "lengths" && own != "offsets")
        return emulate::fillScores(subject.scores, own, tensor);
      const std::vector<double> &words = own == "lengths" ? subject.lengths : subject.offsets;
      size_t place = 0;
      tensor.forEach([&](std::span<const int64_t> at) {
        reference::storeElement(tensor.type, tensor.at(at), words.at(place++));
      });
      return true;
    };
    emulate::checkEmitted(
        subject.kernel, subject.configuration, subject.emitted, built.kernel(i),
        subject.emitted.launch.grid, subject.emitted.launch.block, fill,
        [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
          emulate::fillDocuments(subject.kernel, subject.segments, tensors);
          if (subject.scores != ScoreKind::usual || !subject.offsets.empty() ||
              hasGreatScores(subject))
            emulate::fillLogSums(subject.kernel, tensors);
          emulate::poisonUnused(subject.kernel, tensors);
          emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::fill, tensors);
        },
        [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
          emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::remove,
                               tensors);
        },
        emulate::mayDiffer(subject.kernel, subject.poison));
  }
}

}  // namespace

TEST_CASE("the backward pass of attention by blocks of 64 and 128 queries") {
  std::vector<Subject> subjects;
  // Three tiles of keys, so that one adds neither first nor last to the sums of a block of queries;
  // extents cut both, and blocks take several tiles each.
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 300, .p = 64, .w = 64},
      whole{.b = 1, .h = 1, .j = 256, .k = 256, .p = 64, .w = 64},
      single{.b = 2, .h = 1, .j = 64, .k = 128, .p = 64, .w = 64};
  for (const int tileQueries : {64, 128}) {
    add(subjects, plainBackward(cut, DType::f16),
        {.tileQueries = tileQueries, .headGroup = 2, .blocks = 1});
    add(subjects, causalBackward(whole, DType::bf16),
        {.tileQueries = tileQueries, .headGroup = 1, .blocks = 3});
    add(subjects, plainBackward(single, DType::f16),
        {.tileQueries = tileQueries, .headGroup = 1, .blocks = 2});
  }
  checkAll("sm90_attention_backward_tiles", subjects);
}

TEST_CASE("the backward pass of attention for every number of panels of columns") {
  std::vector<Subject> subjects;
  const Sm90AttentionBackwardKnobs knobs{.tileQueries = 64, .headGroup = 1, .blocks = 1};
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{24, 40}, {80, 80}, {96, 64}, {128, 128}})
    add(subjects, plainBackward({.h = 1, .j = 70, .k = 140, .p = p, .w = w}, DType::f16), knobs);
  checkAll("sm90_attention_backward_dimensions", subjects);
}

TEST_CASE("the backward pass of attention under masks, with tiles that nothing sees") {
  std::vector<Subject> subjects;
  const Sm90AttentionBackwardKnobs knobs{.tileQueries = 64, .headGroup = 2, .blocks = 2};
  // Of fewer keys than queries, the first queries see none; of more, nothing sees the first keys.
  add(subjects, causalBackward({.b = 1, .h = 2, .j = 300, .k = 150, .p = 64, .w = 64}, DType::f16),
      knobs);
  add(subjects,
      windowBackward({.b = 1, .h = 1, .j = 100, .k = 400, .p = 64, .w = 64}, DType::f16, 30, 0),
      knobs);
  add(subjects,
      windowBackward({.b = 1, .h = 1, .j = 400, .k = 400, .p = 64, .w = 64}, DType::bf16, 30, 0),
      knobs);
  add(subjects, paddedBackward({.b = 3, .h = 1, .j = 70, .k = 270, .p = 64, .w = 64}, DType::f16),
      knobs, {270, 5, 0});
  checkAll("sm90_attention_backward_masks", subjects);
}

TEST_CASE("the backward pass of adversarial scores: equal, one huge, as large as f16 holds, tiny") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 1, .h = 1, .j = 70, .k = 140, .p = 64, .w = 64};
  const Sm90AttentionBackwardKnobs together{.tileQueries = 64, .headGroup = 1, .blocks = 2};
  DType type = DType::f16, other = DType::bf16;
  for (const ScoreKind scores : adversarialScores) {
    const auto addScored = [&](const Kernel &kernel, const Sm90AttentionBackwardKnobs &knobs) {
      add(subjects, kernel, knobs);
      subjects.back().scores = scores;
    };
    addScored(plainBackward(e, type), together);
    addScored(windowBackward(e, other, 3, 0), apart(128, 2));  // most scores are -inf
    addScored(biasedBackward(e, type, true), together);
    addScored(biasedBackward(e, other, true), apart(64, 2));
    addScored(cappedBackward(e, other), together);
    addScored(cappedBackward(e, type, true), together);
    addScored(cappedBackward(e, other, true), apart(64, 2));
    std::swap(type, other);
  }
  checkAll("sm90_attention_backward_adversarial", subjects);
}

TEST_CASE("the backward pass of attention skips tiles between documents") {
  std::vector<Subject> subjects;
  const Sm90AttentionBackwardKnobs whole{.tileQueries = 64, .headGroup = 2, .blocks = 2};
  const AttentionExtents cut{.b = 2, .h = 1, .j = 150, .k = 270, .p = 64, .w = 64},
      last{.b = 1, .h = 2, .j = 70, .k = 258, .p = 64, .w = 64};
  for (const Sm90AttentionBackwardKnobs &knobs : {whole, apart(64, 2)}) {
    add(subjects, documentBackward(cut, DType::f16), knobs);
    subjects.back().segments = emulate::segmentsOf(cut.b, cut.k, 96);
    add(subjects, documentBackward(last, DType::bf16), knobs);
    subjects.back().segments = emulate::hiddenDocuments(last.k, 160);
    subjects.back().poison = emulate::unreadKeys(0, 128);
  }
  checkAll("sm90_attention_backward_documents", subjects);
}

TEST_CASE(
    "the backward pass of attention under block masks, with rows and columns without a tile") {
  std::vector<Subject> subjects;
  const Sm90AttentionBackwardKnobs knobs{.tileQueries = 64, .headGroup = 2, .blocks = 2};
  // A table of 5 x 9 tiles whose second row and fourth column are empty.
  const std::string holes = "table(block=32,heads=1,rows=5,columns=9,bits=1500001717f0601)";
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 270, .p = 64, .w = 64};
  add(subjects, blockBackward(cut, DType::f16, holes, false, true), knobs);
  // Of one head or the other most tiles of keys are seen by no query.
  add(subjects,
      blockBackward(cut, DType::bf16, "random(block=64,density=0.15,seed=2,heads=each)", true),
      knobs);
  add(subjects,
      blockBackward({.b = 1, .h = 1, .g = 2, .j = 300, .k = 300, .p = 64, .w = 64}, DType::f16,
                    "random(block=128,density=0.3,seed=6,heads=each)", true),
      {.tileQueries = 128, .headGroup = 1, .blocks = 3});
  checkAll("sm90_attention_backward_block_masks", subjects);
}

TEST_CASE("the backward pass of attention with groups of heads, biases and dropout") {
  std::vector<Subject> subjects;
  const Sm90AttentionBackwardKnobs knobs{.tileQueries = 128, .headGroup = 2, .blocks = 2};
  add(subjects,
      causalBackward({.b = 1, .h = 2, .g = 3, .j = 130, .k = 130, .p = 64, .w = 64}, DType::f16),
      knobs);
  add(subjects, biasedBackward({.b = 1, .h = 2, .j = 90, .k = 140, .p = 64, .w = 64}, DType::f16),
      knobs);
  add(subjects,
      plainBackward({.b = 2, .h = 2, .j = 90, .k = 140, .p = 64, .w = 64}, DType::bf16,
                    Dropout{.p = 0.25, .stream = 3}),
      knobs);
  checkAll("sm90_attention_backward_others", subjects);
}

TEST_CASE("the backward pass of biases by position, and of a mask that is added to scores") {
  std::vector<Subject> subjects;
  const Sm90AttentionBackwardKnobs together{.tileQueries = 64, .headGroup = 2, .blocks = 2};
  const AttentionExtents e{
      .b = 2, .h = 2, .g = 2, .j = 75, .k = 90, .p = 40, .w = 64, .distance = 20};
  size_t turn = 0;
  for (const DType type : {DType::f16, DType::bf16})
    for (const Kernel &kernel :
         {alibiBackward(e, type), relativeBackward(e, type, type == DType::f16),
          addedMaskBackward(e, type)})
      add(subjects, kernel, ++turn % 2 == 0 ? together : apart(64, 2));
  checkAll("sm90_attention_backward_positions", subjects);
}

TEST_CASE("the backward pass of attention where tiles of some heads of a group share keys") {
  std::vector<Subject> subjects;
  // Parts of one head, of equal sizes, and a last one that is smaller; blocks take several tiles
  // each; of fewer keys than queries the first ones see none, and some tiles of keys see nothing.
  const AttentionExtents three{.b = 1, .h = 2, .g = 3, .j = 130, .k = 200, .p = 64, .w = 64},
      four{.b = 2, .h = 1, .g = 4, .j = 300, .k = 150, .p = 64, .w = 48};
  add(subjects, plainBackward(three, DType::f16),
      {.tileQueries = 64, .headGroup = 4, .headsOfTile = 2, .blocks = 3});
  add(subjects, causalBackward(three, DType::bf16),
      {.tileQueries = 128, .headGroup = 6, .headsOfTile = 1, .blocks = 2});
  add(subjects, causalBackward(four, DType::f16),
      {.tileQueries = 64, .headGroup = 3, .headsOfTile = 3, .blocks = 2});
  add(subjects,
      windowBackward({.b = 1, .h = 1, .g = 4, .j = 100, .k = 400, .p = 64, .w = 64}, DType::f16, 30,
                     0),
      {.tileQueries = 64, .headGroup = 2, .headsOfTile = 2, .blocks = 1});
  // Columns that fill half a panel, a part of one, and one and a part of the next.
  for (const int64_t width : {32, 40, 80}) {
    const AttentionExtents narrow{
        .b = 1, .h = 2, .g = 3, .j = 90, .k = 200, .p = width, .w = width};
    const DType type = width == 40 ? DType::bf16 : DType::f16;
    const Sm90AttentionBackwardKnobs one{
        .tileQueries = 64, .headGroup = 3, .headsOfTile = 1, .blocks = 3},
        two{.tileQueries = 64, .headGroup = 4, .headsOfTile = 2, .blocks = 2};
    add(subjects, causalBackward(narrow, type), one);
    add(subjects, plainBackward(narrow, type, Dropout{.p = 0.25, .stream = 3}), two);
    add(subjects, causalBackward(narrow, type, Dropout{.p = 0.25, .stream = 3}), one);
  }
  checkAll("sm90_attention_backward_parts", subjects);
}

TEST_CASE("gradients of queries that tiles of keys add to in any order") {
  std::vector<Subject> subjects;
  const GradientSums unordered = GradientSums::unordered;
  // Three tiles of keys, blocks that take several each; parts of a group's heads; and queries that
  // see no key, which the first tile writes alone.
  add(subjects, plainBackward({.b = 1, .h = 2, .j = 150, .k = 300, .p = 64, .w = 64}, DType::f16),
      {.sums = unordered, .tileQueries = 128, .headGroup = 2, .blocks = 2});
  add(subjects, causalBackward({.b = 1, .h = 2, .j = 300, .k = 150, .p = 80, .w = 64}, DType::bf16),
      {.sums = unordered, .tileQueries = 64, .headGroup = 1, .blocks = 3});
  add(subjects,
      causalBackward({.b = 1, .h = 1, .g = 3, .j = 130, .k = 200, .p = 64, .w = 64}, DType::f16),
      {.sums = unordered, .tileQueries = 64, .headGroup = 4, .headsOfTile = 2, .blocks = 3});
  checkAll("sm90_attention_backward_unordered", subjects);
}

TEST_CASE("the gradient of scores is stored, masked ones as zeros, by both forms") {
  std::vector<Subject> subjects;
  const Sm90AttentionBackwardKnobs together{.tileQueries = 64, .headGroup = 2, .blocks = 2};
  // Extents that are odd and even, which are stored one by one and in pairs; layouts by number.
  for (const int64_t length : {139, 140})
    for (const Sm90AttentionBackwardKnobs &knobs : {together, apart(64, 2), apart(128, 2, 64)})
      add(subjects,
          biasedBackward({.b = 2, .h = 1, .g = 2, .j = 90, .k = length, .p = 64, .w = 64},
                         DType::f16, true),
          knobs);
  add(subjects,
      biasedBackward({.b = 1, .h = 2, .j = 150, .k = 90, .p = 64, .w = 64}, DType::bf16, true,
                     Dropout{.p = 0.25, .stream = 3}),
      together);
  checkAll("sm90_attention_backward_scores", subjects);
}

TEST_CASE("gradients apart by tiles of 64 and 128 keys or queries, for every number of panels") {
  std::vector<Subject> subjects;
  // Extents cut tiles and blocks of both sides; blocks take several tiles each.
  for (const int rows : {64, 128}) {
    add(subjects, plainBackward({.b = 1, .h = 2, .j = 150, .k = 300, .p = 64, .w = 64}, DType::f16),
        apart(rows, 1));
    add(subjects,
        causalBackward({.b = 1, .h = 1, .j = 256, .k = 256, .p = 128, .w = 128}, DType::bf16),
        apart(rows, 3, rows / 2));
  }
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{16, 16}, {24, 40}, {80, 80}, {96, 64}})
    add(subjects, plainBackward({.h = 1, .j = 70, .k = 140, .p = p, .w = w}, DType::f16),
        apart(64, 2));
  checkAll("sm90_split_backward_tiles", subjects);
}

TEST_CASE("gradients apart under masks and block masks, with tiles that nothing sees") {
  std::vector<Subject> subjects;
  // Of fewer keys than queries, the first queries see none; of more, nothing sees the first keys.
  add(subjects, causalBackward({.b = 1, .h = 2, .j = 300, .k = 150, .p = 64, .w = 64}, DType::f16),
      apart(64, 2));
  add(subjects,
      windowBackward({.b = 1, .h = 1, .j = 100, .k = 400, .p = 64, .w = 64}, DType::bf16, 30, 0),
      apart(128, 2));
  add(subjects, paddedBackward({.b = 3, .h = 1, .j = 70, .k = 270, .p = 64, .w = 64}, DType::f16),
      apart(64, 2), {270, 5, 0});
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 270, .p = 64, .w = 64};
  const std::string holes = "table(block=32,heads=1,rows=5,columns=9,bits=1500001717f0601)";
  add(subjects, blockBackward(cut, DType::f16, holes, false, true), apart(64, 2));
  // Groups of heads; tiles of keys and of queries that see most are taken of all heads first.
  add(subjects,
      blockBackward({.b = 2, .h = 2, .g = 2, .j = 330, .k = 330, .p = 64, .w = 64}, DType::f16,
                    "longformer(block=32,window=1,global=1)"),
      apart(64, 5));
  add(subjects,
      blockBackward({.b = 1, .h = 3, .g = 2, .j = 300, .k = 300, .p = 64, .w = 64}, DType::bf16,
                    "random(block=64,density=0.2,seed=6,heads=each)", true),
      apart(64, 3));
  checkAll("sm90_split_backward_masks", subjects);
}

TEST_CASE("gradients apart where tiles of some heads of a group share keys") {
  std::vector<Subject> subjects;
  const auto parts = [](Sm90AttentionBackwardKnobs knobs, int headsOfTile) {
    knobs.headsOfTile = headsOfTile;
    return knobs;
  };
  // Tiles that see most come first, of all parts; others see nothing, of one head of a part or of
  // all; blocks take several tiles each.
  add(subjects,
      blockBackward({.b = 1, .h = 2, .g = 3, .j = 330, .k = 330, .p = 64, .w = 48}, DType::f16,
                    "longformer(block=32,window=1,global=1)"),
      parts(apart(64, 5), 1));
  add(subjects,
      blockBackward({.b = 2, .h = 1, .g = 4, .j = 300, .k = 300, .p = 64, .w = 64}, DType::bf16,
                    "random(block=64,density=0.2,seed=6,heads=each)", true, true),
      parts(apart(128, 3), 2));
  add(subjects,
      blockBackward({.b = 1, .h = 1, .g = 2, .j = 150, .k = 270, .p = 128, .w = 128}, DType::f16,
                    "table(block=32,heads=1,rows=5,columns=9,bits=1500001717f0601)"),
      parts(apart(64, 2, 32), 1));
  add(subjects,
      plainBackward({.b = 1, .h = 2, .g = 4, .j = 90, .k = 140, .p = 64, .w = 64}, DType::bf16,
                    Dropout{.p = 0.25, .stream = 3}),
      parts(apart(64, 1), 2));
  // Columns that fill half a panel, a part of one, and one and a part of the next; tiles of 64 and
  // of 128 keys.
  for (const int64_t width : {32, 40, 80}) {
    const AttentionExtents narrow{
        .b = 1, .h = 2, .g = 4, .j = 90, .k = 140, .p = width, .w = width};
    const DType type = width == 40 ? DType::f16 : DType::bf16;
    add(subjects, causalBackward(narrow, type), parts(apart(64, 3), 1));
    add(subjects, plainBackward(narrow, type, Dropout{.p = 0.25, .stream = 3}),
        parts(apart(128, 2, 32), 2));
    add(subjects, causalBackward(narrow, type, Dropout{.p = 0.25, .stream = 3}),
        parts(apart(64, 2), 2));
  }
  checkAll("sm90_split_backward_parts", subjects);
}

TEST_CASE("gradients apart with groups of heads, biases and dropout") {
  std::vector<Subject> subjects;
  add(subjects,
      causalBackward({.b = 1, .h = 3, .g = 3, .j = 130, .k = 130, .p = 64, .w = 64}, DType::f16),
      apart(64, 2));
  add(subjects, biasedBackward({.b = 1, .h = 2, .j = 90, .k = 140, .p = 64, .w = 64}, DType::f16),
      apart(128, 2));
  add(subjects,
      plainBackward({.b = 2, .h = 2, .j = 90, .k = 140, .p = 64, .w = 64}, DType::bf16,
                    Dropout{.p = 0.25, .stream = 3}),
      apart(64, 2));
  checkAll("sm90_split_backward_others", subjects);
}

TEST_CASE("tiles of one gradient of heads of up to 256 columns, and narrow ones") {
  std::vector<Subject> subjects;
  // Extents cut tiles and blocks of both sides; blocks take several tiles each, and one of a
  // block, of three, of more than places of the buffer.
  add(subjects, plainBackward({.b = 1, .h = 2, .j = 150, .k = 300, .p = 256, .w = 256}, DType::f16),
      single(2));
  add(subjects,
      causalBackward({.b = 1, .h = 1, .j = 256, .k = 256, .p = 256, .w = 256}, DType::bf16),
      single(3, 32));
  add(subjects,
      causalBackward({.b = 1, .h = 1, .j = 201, .k = 133, .p = 192, .w = 192}, DType::f16),
      single(1));
  for (const auto &[p, w] :
       {std::pair<int64_t, int64_t>{192, 128}, {128, 192}, {136, 256}, {200, 24}, {40, 16}})
    add(subjects, plainBackward({.h = 1, .j = 70, .k = 140, .p = p, .w = w}, DType::f16),
        single(2, p == 200 ? 32 : 64));
  checkAll("sm90_single_backward_tiles", subjects);
}

TEST_CASE("tiles of one gradient under masks and block masks, of which nothing sees some") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.p = 192, .w = 136};
  const auto of = [&](int64_t b, int64_t h, int64_t g, int64_t j, int64_t k) {
    AttentionExtents own = e;
    own.b = b, own.h = h, own.g = g, own.j = j, own.k = k;
    return own;
  };
  // Of fewer keys than queries, the first queries see none; of more, nothing sees the first keys.
  add(subjects, causalBackward(of(1, 2, 1, 300, 150), DType::f16), single(2));
  add(subjects, windowBackward(of(1, 1, 1, 100, 400), DType::bf16, 30, 0), single(2));
  add(subjects, paddedBackward(of(3, 1, 1, 70, 270), DType::f16), single(2), {270, 5, 0});
  // Groups of heads; tiles of keys and of queries that see most are taken of all heads first.
  add(subjects,
      blockBackward({.b = 1, .h = 3, .g = 2, .j = 700, .k = 700, .p = 32, .w = 24}, DType::f16,
                    "longformer(block=64,window=1,global=1)"),
      single(5));
  CHECK(codegen::emit(subjects.back().kernel, subjects.back().configuration, "sm_90a")
            .readable.find(".longKeyTiles = 1, .longQueryTiles = 1") != std::string::npos);
  add(subjects,
      blockBackward(of(1, 3, 2, 300, 300), DType::bf16,
                    "random(block=64,density=0.2,seed=6,heads=each)", true),
      single(3));
  checkAll("sm90_single_backward_masks", subjects);
}

TEST_CASE("tiles of one gradient with groups of heads, biases, stored gradients and dropout") {
  std::vector<Subject> subjects;
  const AttentionExtents wide{.b = 1, .h = 1, .g = 3, .j = 130, .k = 130, .p = 256, .w = 256},
      cut{.b = 2, .h = 2, .j = 90, .k = 141, .p = 192, .w = 128};
  add(subjects, causalBackward(wide, DType::f16), single(2));
  add(subjects, biasedBackward(cut, DType::f16), single(2));
  add(subjects, biasedBackward(cut, DType::bf16, true), single(2, 32));
  add(subjects, cappedBackward(cut, DType::f16), single(1));
  add(subjects, cappedBackward(cut, DType::bf16, true), single(2, 32));
  add(subjects, plainBackward(cut, DType::bf16, Dropout{.p = 0.25, .stream = 3}), single(2, 32));
  for (const ScoreKind scores : adversarialScores) {
    add(subjects, causalBackward({.h = 1, .j = 70, .k = 140, .p = 192, .w = 192}, DType::bf16),
        single(2));
    subjects.back().scores = scores;
  }
  checkAll("sm90_single_backward_others", subjects);
}

TEST_CASE("gradients apart of more than 128 columns where both fit the registers") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 1, .h = 1, .g = 2, .j = 130, .k = 201, .p = 192, .w = 128};
  add(subjects, causalBackward(e, DType::f16), apart(128, 2, 32));
  add(subjects, plainBackward({.h = 1, .j = 70, .k = 140, .p = 64, .w = 192}, DType::bf16),
      apart(128, 2, 32));
  checkAll("sm90_split_backward_wide", subjects);
}

TEST_CASE("the backward pass over packed tokens reads and writes those of each sequence alone") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 4, .h = 2, .j = 300, .k = 300, .p = 64, .w = 64, .tokens = 640},
      narrow{.b = 4, .h = 1, .j = 150, .k = 150, .p = 80, .w = 72, .tokens = 330},
      groups{.b = 3, .h = 2, .g = 3, .j = 140, .k = 140, .p = 64, .w = 64, .tokens = 270},
      single{.b = 3, .h = 1, .j = 100, .k = 100, .p = 64, .w = 64, .tokens = 200};
  // Tiles that end within a sequence, a sequence of one token, one of none, one at full length.
  const std::vector<double> lengths = {170, 0, 1, 300}, offsets = {0, 170, 170, 171, 471};
  for (const int tileQueries : {64, 128}) {
    const Sm90AttentionBackwardKnobs knobs{.tileQueries = tileQueries, .headGroup = 2, .blocks = 3},
        one{.tileQueries = tileQueries, .headGroup = 1, .blocks = 1};
    const DType type = tileQueries == 64 ? DType::f16 : DType::bf16;
    add(subjects, packedBackward(e, type, true), knobs, lengths, offsets);
    add(subjects, packedBackward(e, type, true, true), one, lengths, offsets);
    // Nothing hides keys behind the last one, and they change no gradient. Rows of no sequence in
    // front, and of one that is cut at its bound.
    add(subjects, packedBackward(e, type, false), one, {}, {13, 40, 40, 400, 640});
    add(subjects, packedBackward(e, type, false, true), knobs, {}, {0, 300, 330, 630, 640});
    // Of one tile of keys sums are rounded at once.
    add(subjects, packedBackward(single, type, true), knobs, {70, 0, 30}, {0, 70, 70, 100});
    add(subjects, packedBackward(groups, type, true, true), knobs, {140, 1, 100},
        {0, 140, 141, 241});
    Sm90AttentionBackwardKnobs parts = knobs;  // of a group
    parts.headsOfTile = 2;
    add(subjects, packedBackward(groups, type, true), parts, {30, 200, 9}, {0, 40, 180, 200});
    AttentionExtents drops = e;  // 128 queries and dropout leave registers for 48 columns
    if (tileQueries == 128) drops.p = drops.w = 48;
    add(subjects, packedBackward(drops, type, true, false, Dropout{.p = 0.3, .stream = 3}), knobs,
        lengths, offsets);
    Sm90AttentionBackwardKnobs unordered = knobs;
    unordered.sums = GradientSums::unordered;
    add(subjects, packedBackward(e, type, true), unordered, {1, 0, 0, 0}, {0, 1, 1, 1, 1});
  }
  // Columns that fill no panel; no token at all.
  add(subjects, packedBackward(narrow, DType::f16, true),
      {.tileQueries = 64, .headGroup = 1, .blocks = 2}, {0, 150, 20, 1}, {0, 0, 150, 170, 171});
  add(subjects, packedBackward(narrow, DType::f16, true),
      {.tileQueries = 64, .headGroup = 1, .blocks = 2}, {0, 0, 0, 0}, {0, 0, 0, 0, 0});
  checkAll("sm90_attention_backward_packed", subjects);
}

TEST_CASE("what is no number reaches no gradient of another tile that masks hide it from") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 2, .h = 1, .j = 150, .k = 270, .p = 32, .w = 24};
  const Sm90AttentionBackwardKnobs together{.tileQueries = 64, .headGroup = 1, .blocks = 2};
  for (const emulate::PoisonedAttention &subject : emulate::poisonedBackwards(e, DType::f16))
    for (const Sm90AttentionBackwardKnobs &knobs : {together, apart(128, 2), single(2)}) {
      add(subjects, subject.kernel, knobs, subject.lengths);
      subjects.back().poison = subject.poison;
    }
  checkAll("sm90_attention_backward_poison", subjects);
}
