// The backward pass of fused attention by mma.sync on the host, down to its instructions: every
// tile of the family on extents that cut it everywhere, head dimensions, masks that leave rows and
// tiles empty, score ops, dropout, groups of heads, layouts, adversarial scores. Gradients of
// queries, keys and values are compared with single elements in fp64.
#include "codegen/families/attention_backward/AttentionBackwardLayouts.h"
#include "codegen/families/attention_backward/AttentionGradients.h"
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardTile.h"
#include "kernel/Error.h"
#include "tests/emulate/AttentionDocuments.h"
#include "tests/emulate/AttentionScores.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/emulate/PoisonedAttentions.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"
#include "tests/unit/samples/SampleTf32.h"

#include <fmt/format.h>

using namespace weft;
using namespace weft::samples;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  std::vector<double> lengths = {};  ///< of the input of that name
  ScoreKind scores = ScoreKind::usual;
  std::vector<double> segments = {};  ///< of the input of that name
  emulate::Poison poison = {};        ///< what hidden elements hold that are no numbers
  std::vector<double> offsets = {};   ///< of the input of that name
  codegen::EmittedKernel emitted = {};
};

/// Layouts by number among all that the family takes.
Configuration configurationOf(const Kernel &kernel, const Sm80AttentionBackwardKnobs &knobs,
                              size_t number) {
  const AttentionBackwardRegion region = attentionBackwardRegion(kernel).value();
  const std::vector<LayoutTuple> tuples = attentionBackwardTuples(kernel, region);
  for (size_t n = 0; n < tuples.size(); ++n) {
    const Configuration configuration =
        toConfiguration(kernel, tuples[(number + n) % tuples.size()], knobs);
    const auto problem = attentionBackwardProblem(kernel, region, configuration);
    if (problem && sm80AttentionBackwardLayoutRejection(*problem).empty()) return configuration;
  }
  throw Error::checkFailed("no layouts");
}

void add(std::vector<Subject> &subjects, const Kernel &kernel,
         const Sm80AttentionBackwardKnobs &knobs, const std::vector<double> &lengths = {},
         const std::vector<double> &offsets = {}) {
  subjects.push_back({.kernel = kernel,
                      .configuration = configurationOf(kernel, knobs, 37 * subjects.size()),
                      .lengths = lengths,
                      .offsets = offsets});
}

void checkAll(const std::string &name, std::vector<Subject> &subjects) {
  std::vector<emulate::Source> sources;
  for (Subject &subject : subjects) {
    subject.emitted = codegen::emit(subject.kernel, subject.configuration, "sm_80");
    sources.push_back({subject.emitted.text, subject.emitted.entry});
  }
  const emulate::HostLibrary built(name, sources);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Subject &subject = subjects[i];
    INFO(subject.kernel.name << ", " << describe(subject.kernel, subject.configuration.knobs)
                             << "\n"
                             << subject.emitted.readable);
    const auto fill = [&](size_t input, const emulate::Tensor &tensor) {
      const std::string &own = subject.kernel.values[size_t(subject.kernel.inputs[input])].name;
      if (own == "lengths" || own == "offsets") {
        const std::vector<double> &words = own == "lengths" ? subject.lengths : subject.offsets;
        size_t place = 0;
        tensor.forEach([&](std::span<const int64_t> at) {
          reference::storeElement(tensor.type, tensor.at(at), words.at(place++));
        });
        return true;
      }
      const bool isTf32 = own != "log_sums" && tensor.type == DType::f32 &&
                          attentionBackwardRegion(subject.kernel).value().readsTf32;
      if (isTf32) {  // all bits of the fraction: a product traps on them
        int64_t place = 0;
        tensor.forEach([&](std::span<const int64_t> at) {
          const double element = emulate::elementOf(input, place++, true, false);
          reference::storeElement(tensor.type, tensor.at(at), element * (1 + 0x1.2345p-9));
        });
        return true;
      }
      return emulate::fillScores(subject.scores, own, tensor);
    };
    const auto fillRest = [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
      emulate::fillDocuments(subject.kernel, subject.segments, tensors);
      emulate::fillLogSums(subject.kernel, tensors);
      emulate::poisonUnused(subject.kernel, tensors);
      emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::fill, tensors);
    };
    const auto restore = [&](std::span<const std::unique_ptr<emulate::Tensor>> tensors) {
      emulate::applyPoison(subject.kernel, subject.poison, emulate::PoisonStep::remove, tensors);
    };
    emulate::checkEmitted(subject.kernel, subject.configuration, subject.emitted, built.kernel(i),
                          subject.emitted.launch.grid, subject.emitted.launch.block, fill, fillRest,
                          restore, emulate::mayDiffer(subject.kernel, subject.poison));
  }
}

constexpr Sm80AttentionBackwardKnobs smallTile{.tileRows = 64, .tileColumns = 32, .stages = 2};
constexpr Dropout dropout{.p = 0.3, .stream = 3};

}  // namespace

TEST_CASE("backward attention of every tile, and of extents that it divides or does not") {
  std::vector<Subject> subjects;
  const AttentionExtents cut{.b = 1, .h = 1, .j = 150, .k = 171, .p = 24, .w = 40},
      whole{.b = 1, .h = 1, .j = 128, .k = 192, .p = 64, .w = 64};
  for (const int tileRows : {32, 64, 128})
    for (const int tileColumns : {16, 32, 64}) {
      const Sm80AttentionBackwardKnobs knobs{tileRows, tileColumns,
                                             2 + int(subjects.size()) / 2 % 3};
      add(subjects, plainBackward(cut, DType::f16), knobs);
      add(subjects, causalBackward(whole, DType::bf16), knobs);
    }
  checkAll("sm80_attention_backward_tiles", subjects);
}

TEST_CASE("backward attention of every head dimension") {
  std::vector<Subject> subjects;
  for (const int64_t width : {8, 16, 24, 40, 64, 72, 80, 96, 128, 136})
    add(subjects,
        plainBackward({.h = 1, .j = 21, .k = 40, .p = width, .w = width},
                      subjects.size() % 2 == 0 ? DType::f16 : DType::bf16),
        smallTile);
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{192, 128}, {40, 136}, {64, 8}, {256, 16}})
    add(subjects, plainBackward({.h = 1, .j = 70, .k = 33, .p = p, .w = w}, DType::f16),
        {.tileRows = 64, .tileColumns = 16, .stages = 2});
  checkAll("sm80_attention_backward_dimensions", subjects);
}

TEST_CASE("gradients of keys and of values of wide heads are of blocks apart") {
  std::vector<Subject> subjects;
  const Sm80AttentionBackwardKnobs knobs{.tileRows = 64, .tileColumns = 16, .stages = 2},
      low{.tileRows = 32, .tileColumns = 32, .stages = 2};
  for (const auto &[p, w] : {std::pair<int64_t, int64_t>{256, 256}, {192, 192}, {136, 256}})
    add(subjects, plainBackward({.h = 1, .j = 70, .k = 75, .p = p, .w = w}, DType::f16),
        p == 192 ? low : knobs);
  // Of more queries than keys the first ones see none; two heads share keys.
  const AttentionExtents e{.b = 1, .h = 2, .g = 2, .j = 90, .k = 70, .p = 176, .w = 168};
  add(subjects, causalBackward(e, DType::bf16), knobs);
  add(subjects, causalBackward(e, DType::f16, Dropout{.p = 0.25, .stream = 3}), low);
  add(subjects, windowBackward(e, DType::f16, 20, 7), knobs);
  add(subjects, paddedBackward({.b = 2, .h = 1, .j = 40, .k = 70, .p = 192, .w = 192}, DType::bf16),
      knobs, {33, 0});
  add(subjects, biasedBackward(e, DType::f16, true), knobs);
  add(subjects, cappedBackward(e, DType::bf16), low);
  add(subjects, cappedBackward(e, DType::f16, true), knobs);
  add(subjects,
      blockBackward(e, DType::f16, "random(block=16,density=0.2,seed=3,heads=each)", true), knobs);
  checkAll("sm80_attention_backward_wide", subjects);
}

TEST_CASE("masked backward attention skips empty tiles, and rows without keys give zeros") {
  std::vector<Subject> subjects;
  for (const auto &[j, k] :
       {std::pair<int64_t, int64_t>{100, 100}, {70, 200}, {200, 70}, {1, 130}}) {
    const AttentionExtents e{.b = 3, .h = 1, .j = j, .k = k, .p = 16, .w = 16};
    // More queries than keys: the first ones see none.
    add(subjects, causalBackward(e, DType::f16), smallTile);
    add(subjects, windowBackward(e, DType::bf16, 20, 7), smallTile);
    add(subjects, windowBackward(e, DType::f16, 150, 0), {.tileRows = 128});
    add(subjects, paddedBackward(e, DType::f16), smallTile, {0, 1, double(k)});
    add(subjects, paddedBackward(e, DType::bf16), smallTile, {double(k) - 30, 33, 0});
  }
  checkAll("sm80_attention_backward_masks", subjects);
}

TEST_CASE("backward attention skips tiles between documents, in any order of segments") {
  std::vector<Subject> subjects;
  const AttentionExtents cut{.b = 2, .h = 1, .j = 131, .k = 203, .p = 16, .w = 16},
      last{.b = 1, .h = 2, .j = 70, .k = 258, .p = 16, .w = 16};
  for (const int64_t run : {1, 40, 96}) {
    add(subjects, documentBackward(cut, DType::f16), smallTile);
    subjects.back().segments = emulate::segmentsOf(cut.b, cut.k, run);
  }
  add(subjects, documentBackward(last, DType::bf16), {.tileRows = 128});
  subjects.back().segments = emulate::hiddenDocuments(last.k, 160);
  subjects.back().poison = emulate::unreadKeys(0, 128);
  checkAll("sm80_attention_backward_documents", subjects);
}

TEST_CASE("backward attention under block masks, with rows and columns without a tile") {
  std::vector<Subject> subjects;
  // A table of 5 x 9 tiles whose second row and fourth column are empty.
  const std::string holes = "table(block=32,heads=1,rows=5,columns=9,bits=1500001717f0601)";
  const AttentionExtents cut{.b = 1, .h = 2, .j = 150, .k = 270, .p = 16, .w = 16};
  add(subjects, blockBackward(cut, DType::f16, holes, false, true), smallTile);
  add(subjects,
      blockBackward(cut, DType::bf16, "random(block=16,density=0.03,seed=2,heads=each)", true),
      smallTile);
  add(subjects,
      blockBackward({.b = 1, .h = 1, .g = 2, .j = 130, .k = 130, .p = 16, .w = 16}, DType::f16,
                    "bigbird(block=16,window=3,global=2,random=1,seed=0,heads=each)", true),
      {.tileRows = 128});
  checkAll("sm80_attention_backward_block_masks", subjects);
}

TEST_CASE("element-wise ops see the coordinates and operands of every score") {
  std::vector<Subject> subjects;
  for (const DType type : {DType::f16, DType::bf16}) {
    const AttentionExtents e{.b = 2, .h = 2, .g = 1, .j = 75, .k = 90, .p = 24, .w = 40};
    add(subjects, biasedBackward(e, type), smallTile);
    add(subjects, cappedBackward(e, type), smallTile);
  }
  checkAll("sm80_attention_backward_scores", subjects);
}

TEST_CASE("biases by position, and a mask of keys that is added to scores") {
  std::vector<Subject> subjects;
  const AttentionExtents e{
      .b = 2, .h = 3, .g = 2, .j = 45, .k = 70, .p = 24, .w = 40, .distance = 20};
  for (const DType type : {DType::f16, DType::bf16}) {
    add(subjects, alibiBackward(e, type), smallTile);
    // Distances beyond the table on both sides.
    add(subjects, relativeBackward(e, type, type == DType::bf16), smallTile);
    add(subjects, addedMaskBackward(e, type), smallTile);
  }
  checkAll("sm80_attention_backward_positions", subjects);
}

TEST_CASE("the gradient of scores is stored by blocks with queries, masked ones as zeros") {
  std::vector<Subject> subjects;
  // Odd extents are stored one by one, even ones in pairs where the layout has keys together. The
  // first queries see nothing of the last keys: tiles that no step visits.
  for (const int64_t length : {75, 76})
    for (const DType type : {DType::f16, DType::bf16})
      add(subjects,
          biasedBackward({.b = 2, .h = 2, .g = 2, .j = 130, .k = length, .p = 16, .w = 24}, type,
                         true, dropout),
          {.tileRows = 64, .tileColumns = 32});
  checkAll("sm80_attention_backward_scores", subjects);
}

TEST_CASE("gradients of keys and values are sums over the heads of a group") {
  std::vector<Subject> subjects;
  add(subjects,
      plainBackward({.b = 2, .h = 2, .g = 3, .j = 40, .k = 50, .p = 16, .w = 24}, DType::f16),
      smallTile);
  add(subjects,
      causalBackward({.b = 1, .h = 2, .g = 2, .j = 65, .k = 70, .p = 16, .w = 16}, DType::bf16,
                     dropout),
      smallTile);
  add(subjects, biasedBackward({.b = 1, .h = 2, .g = 2, .j = 40, .k = 40, .p = 16}, DType::f16),
      smallTile);
  // The heads of a group are the queries.
  add(subjects,
      plainBackward({.b = 2, .h = 2, .g = 8, .j = 1, .k = 100, .p = 32, .w = 32}, DType::f16),
      smallTile);
  add(subjects, plainBackward({.b = 1, .h = 1, .j = 1, .k = 1, .p = 8, .w = 8}, DType::f16),
      smallTile);
  checkAll("sm80_attention_backward_groups", subjects);
}

TEST_CASE("backward attention drops what its forward pass dropped") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 1, .h = 2, .j = 83, .k = 90, .p = 24, .w = 40};
  for (const int tileColumns : {16, 64}) {
    const Sm80AttentionBackwardKnobs knobs{.tileRows = 64, .tileColumns = tileColumns};
    add(subjects, plainBackward(e, DType::f16, dropout), knobs);
    add(subjects, causalBackward(e, DType::bf16, dropout), knobs);
  }
  add(subjects, plainBackward(e, DType::f16, Dropout{.p = 0, .stream = 3}), smallTile);
  checkAll("sm80_attention_backward_dropout", subjects);
}

TEST_CASE("scores that are equal, one that is huge, and scores as large as the type holds") {
  std::vector<Subject> subjects;
  for (const ScoreKind scores : adversarialScores)
    for (const DType type : {DType::f16, DType::bf16})
      for (const bool isCausal : {false, true}) {
        const AttentionExtents e{.b = 1, .h = 1, .j = 50, .k = 60, .p = 32, .w = 32};
        const int64_t width = type == DType::f16 ? 256 : 192;
        const AttentionExtents wide{.b = 1, .h = 1, .j = 20, .k = 30, .p = width, .w = width};
        const auto addScored = [&](const Kernel &kernel, const Sm80AttentionBackwardKnobs &knobs) {
          add(subjects, kernel, knobs);
          subjects.back().scores = scores;
        };
        addScored(isCausal ? causalBackward(e, type) : plainBackward(e, type), smallTile);
        addScored(isCausal ? cappedBackward(e, type) : biasedBackward(e, type, true), smallTile);
        addScored(isCausal ? causalBackward(wide, type) : biasedBackward(wide, type, true),
                  {.tileRows = 64, .tileColumns = 16, .stages = 2});
      }
  checkAll("sm80_attention_backward_adversarial", subjects);
}

TEST_CASE("f32 is read as tf32: backward attention of every tile, width, mask, with dropout") {
  std::vector<Subject> subjects;
  const auto addTf32 = [&](const Kernel &kernel, const Sm80AttentionBackwardKnobs &knobs,
                           const std::vector<double> &lengths = {}) {
    add(subjects, inTf32(kernel), knobs, lengths);
  };
  const AttentionExtents cut{.b = 1, .h = 1, .j = 70, .k = 91, .p = 24, .w = 40},
      groups{.b = 2, .h = 1, .g = 2, .j = 45, .k = 50, .p = 16, .w = 16};
  for (const int tileRows : {32, 64, 128})
    for (const int tileColumns : {16, 32, 64}) {
      const Sm80AttentionBackwardKnobs knobs{tileRows, tileColumns,
                                             2 + int(subjects.size()) / 2 % 2};
      addTf32(plainBackward(cut, DType::f32), knobs);
      addTf32(causalBackward(groups, DType::f32), knobs);
    }
  for (const int64_t width : {8, 64, 128, 160})
    addTf32(plainBackward({.h = 1, .j = 21, .k = 40, .p = width, .w = width}, DType::f32),
            {.tileRows = 32, .tileColumns = 16, .stages = 2});
  addTf32(cappedBackward(cut, DType::f32), smallTile);
  addTf32(causalBackward(groups, DType::f32, dropout), smallTile);
  addTf32(paddedBackward(groups, DType::f32), smallTile, {50, 0});
  checkAll("sm80_attention_backward_tf32", subjects);
}

TEST_CASE("backward attention over packed tokens reads and writes those of each sequence alone") {
  std::vector<Subject> subjects;
  const Sm80AttentionBackwardKnobs three{.tileRows = 128, .tileColumns = 16, .stages = 3};
  const AttentionExtents e{.b = 4, .h = 2, .j = 150, .k = 150, .p = 64, .w = 64, .tokens = 330},
      groups{.b = 3, .h = 2, .g = 2, .j = 80, .k = 80, .p = 40, .w = 72, .tokens = 100};
  // Tiles that end within a sequence, a sequence of one token, one of none, one at full length.
  const std::vector<double> lengths = {70, 0, 1, 150}, offsets = {0, 70, 70, 71, 221};
  for (const DType type : {DType::f16, DType::bf16}) {
    add(subjects, packedBackward(e, type, true), smallTile, lengths, offsets);
    add(subjects, packedBackward(e, type, true, true), three, lengths, offsets);
    // Nothing hides keys behind the last one, and they change no gradient. Rows of no sequence in
    // front, and of one that is cut at its bound.
    add(subjects, packedBackward(e, type, false), smallTile, {}, {13, 40, 40, 241, 300});
    add(subjects, packedBackward(e, type, false, true), smallTile, {}, {0, 150, 180, 330, 330});
    // Groups of heads; lengths that are none of the offsets'.
    add(subjects, packedBackward(groups, type, true, true), smallTile, {30, 200, 9},
        {0, 40, 87, 100});
    add(subjects, packedBackward(e, type, true, false, dropout), smallTile, lengths, offsets);
  }
  // No token at all.
  add(subjects, packedBackward(groups, DType::f16, true), smallTile, {0, 0, 0}, {0, 0, 0, 0});
  // More sequences than there are tiles of one; tokens up to the last row.
  std::vector<double> many = {0}, counts;
  for (int i = 0; i < 35; ++i) {
    counts.push_back(double(i * 7 % 13));
    many.push_back(many.back() + counts.back());
  }
  add(subjects,
      packedBackward(
          {.b = 35, .h = 1, .j = 12, .k = 12, .p = 32, .w = 32, .tokens = int64_t(many.back())},
          DType::f16, true),
      smallTile, counts, many);
  // f32 that is read as tf32.
  add(subjects, inTf32(packedBackward(e, DType::f32, true, true)), smallTile, lengths, offsets);
  add(subjects, inTf32(packedBackward(groups, DType::f32, false, false, dropout)),
      {.tileRows = 32, .tileColumns = 16, .stages = 2}, {}, {3, 43, 90, 97});
  checkAll("sm80_attention_backward_packed", subjects);
}

TEST_CASE("what is no number reaches no gradient of another tile that masks hide it from") {
  std::vector<Subject> subjects;
  const AttentionExtents e{.b = 2, .h = 1, .j = 150, .k = 270, .p = 16, .w = 16};
  const Sm80AttentionBackwardKnobs large{.tileRows = 128, .tileColumns = 64, .stages = 2};
  for (const emulate::PoisonedAttention &subject : emulate::poisonedBackwards(e, DType::f16))
    for (const Sm80AttentionBackwardKnobs &knobs : {smallTile, large}) {
      add(subjects, subject.kernel, knobs, subject.lengths);
      subjects.back().poison = subject.poison;
    }
  checkAll("sm80_attention_backward_poison", subjects);
}
