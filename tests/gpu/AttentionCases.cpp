// Cases of fused attention and of its backward pass: every family, head width, mask and kind of
// score op, at odd lengths.
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"
#include "tests/gpu/Collector.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"
#include "tests/unit/samples/SampleTf32.h"

namespace weft::gputest {
namespace {

using samples::AttentionExtents;

/// Block masks at any extents: the first has rows and columns without a tile.
constexpr const char *ofAllHeads = "fixed(block=32,stride=3,summary=1)",
                     *ofEachHead = "bigbird(block=16,window=3,global=0,random=1,seed=0,heads=each)";

/// Block masks are empty at some short extents, which no kernel takes.
std::vector<Kernel> kindsOf(const AttentionExtents &extents, DType type, bool hasBlocks = true) {
  std::vector<Kernel> kinds = {samples::plainAttention(extents, type),
                               samples::plainAttention(extents, type, true),
                               samples::causalAttention(extents, type, true),
                               samples::windowAttention(extents, type, 17, 40),
                               samples::windowAttention(extents, type, 9, 9, 33),
                               samples::paddedAttention(extents, type),
                               samples::paddedAttention(extents, type, true),
                               samples::biasedAttention(extents, type),
                               samples::cappedAttention(extents, type),
                               samples::droppedAttention(extents, type, {.p = 0.3, .stream = 5})};
  if (hasBlocks) {
    kinds.push_back(samples::blockAttention(extents, type, ofAllHeads));
    kinds.push_back(samples::blockAttention(extents, type, ofEachHead, true, true, true));
  }
  return kinds;
}

std::vector<Kernel> backwardsOf(const AttentionExtents &extents, DType type,
                                bool hasBlocks = true) {
  const Dropout dropout{.p = 0.3, .stream = 5};
  std::vector<Kernel> kinds = {samples::plainBackward(extents, type),
                               samples::causalBackward(extents, type),
                               samples::plainBackward(extents, type, dropout),
                               samples::causalBackward(extents, type, dropout),
                               samples::windowBackward(extents, type, 17, 40),
                               samples::paddedBackward(extents, type),
                               samples::biasedBackward(extents, type),
                               samples::biasedBackward(extents, type, true),
                               samples::cappedBackward(extents, type)};
  if (hasBlocks) {
    kinds.push_back(samples::blockBackward(extents, type, ofAllHeads));
    kinds.push_back(samples::blockBackward(extents, type, ofEachHead, true, true));
  }
  return kinds;
}
bool isApart(const Knobs &any) {
  const auto *knobs = any.getIf<Sm90AttentionBackwardKnobs>();
  return knobs && knobs->gradients == BackwardGradients::apart;
}
bool isApartInParts(const Knobs &any) {
  return isApart(any) && any.get<Sm90AttentionBackwardKnobs>().headsOfTile > 0;
}
bool isTogetherInParts(const Knobs &any) {
  const auto *knobs = any.getIf<Sm90AttentionBackwardKnobs>();
  return knobs && !isApart(any) && knobs->headsOfTile > 0;
}
bool arePacked(const Knobs &any) {
  const auto *knobs = any.getIf<Sm90AttentionKnobs>();
  return knobs && knobs->packed != 0;
}
bool areSplit(const Knobs &any) {
  const auto *knobs = any.getIf<Sm90AttentionKnobs>();
  return knobs && knobs->splits > 1;
}
bool isNotApart(const Knobs &any) { return !isApart(any); }

/// Of packed tokens: one token a sequence, odd lengths, groups of heads, many sequences.
constexpr AttentionExtents packedExtents[] = {
    {.b = 3, .h = 2, .j = 1, .k = 1, .tokens = 3},
    {.b = 7, .h = 3, .j = 130, .k = 130, .tokens = 910},
    {.b = 4, .h = 2, .g = 2, .j = 517, .k = 517, .tokens = 2068},
    {.b = 70, .h = 1, .g = 3, .j = 65, .k = 65, .tokens = 4550},
    {.b = 1, .h = 3, .j = 201, .k = 201, .tokens = 201}};

}  // namespace

void addAttentions(Collector &collect) {
  const AttentionExtents lengths[] = {{.b = 2, .h = 3, .j = 1, .k = 1},
                                      {.b = 1, .h = 2, .j = 63, .k = 65},
                                      {.b = 2, .h = 2, .g = 2, .j = 65, .k = 257},
                                      {.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
                                      {.b = 2, .h = 1, .g = 4, .j = 200, .k = 777}};
  const std::pair<int64_t, int64_t> widths[] = {{64, 64},   {128, 128}, {16, 16},  {32, 48},
                                                {40, 40},   {72, 72},   {80, 80},  {96, 96},
                                                {192, 128}, {192, 192}, {256, 256}};
  const Knobs families[] = {Sm90AttentionKnobs{}, Sm80AttentionKnobs{}};
  size_t turn = 0;  // every width meets every kind, and the widths of most models all of them
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths)
      for (const auto &[headDim, valueDim] : widths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        const std::vector<Kernel> kinds = kindsOf(extents, type);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if (isUsual || (kind + ++turn) % 4 == 0)
            for (const Knobs &family : families)
              for (const Configuration &configuration : collect.drawFamily(kinds[kind], family, 1))
                collect.add("attention", kinds[kind], type, configuration);
      }
  // Gathered from a row for each query and each key.
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths)
      for (const int64_t width : {32, 64, 128}) {
        AttentionExtents extents = one;
        extents.p = extents.w = width, extents.distance = 20;
        const Kernel kernel = samples::disentangledAttention(extents, type, width == 64);
        for (const Knobs &family : families)
          for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
            collect.add("attention", kernel, type, configuration);
      }
  // f32 that is read as tf32.
  for (const AttentionExtents &one : lengths)
    for (const auto &[headDim, valueDim] : widths) {
      AttentionExtents extents = one;
      extents.p = headDim, extents.w = valueDim;
      const std::vector<Kernel> kinds = kindsOf(extents, DType::f32);
      for (size_t kind = 0; kind < kinds.size(); ++kind)
        if ((kind + ++turn) % 4 == 0)
          for (const Kernel kernel = samples::inTf32(kinds[kind]);
               const Configuration &configuration :
               collect.drawFamily(kernel, Sm80AttentionKnobs{}, 1))
            collect.add("attention-tf32", kernel, nameOf(samples::tf32Types), configuration);
    }
  for (const int64_t width : {64, 128})
    for (const Kernel &kernel :
         kindsOf({.b = 1, .h = 2, .j = 1111, .k = 4099, .p = width, .w = width}, DType::f16))
      for (const Configuration &configuration : collect.drawFamily(kernel, Sm90AttentionKnobs{}, 1))
        collect.add("attention-long", kernel, DType::f16, configuration);
  // Packed tokens: offsets ascend by any steps, and lengths have nothing to do with them.
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : packedExtents)
      for (const auto &[headDim, valueDim] : widths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        for (const Kernel &kernel :
             {samples::packedAttention(extents, type, false),
              samples::packedAttention(extents, type, true),
              samples::packedAttention(extents, type, true, true),
              samples::packedAttention(extents, type, true, false, Dropout{.p = 0.3, .stream = 5})})
          for (const Knobs &family : families)
            for (const Configuration &configuration :
                 collect.drawFamily(kernel, family, headDim == 64 ? 4 : 1))
              collect.add("attention-packed", kernel, type, configuration);
        const Kernel kernel =
            samples::inTf32(samples::packedAttention(extents, DType::f32, true, true));
        if (type == DType::f16)
          for (const Configuration &configuration :
               collect.drawFamily(kernel, Sm80AttentionKnobs{}, 1))
            collect.add("attention-packed", kernel, nameOf(samples::tf32Types), configuration);
        // Masks by the lengths that were packed, which kernels of WGMMA leave out.
        for (const bool isUnread : {false, true})
          for (const Kernel &ended : {samples::endedAttention(extents, type, isUnread),
                                      samples::endedAttention(extents, type, isUnread, true),
                                      samples::endedAttention(extents, type, isUnread, false,
                                                              Dropout{.p = 0.3, .stream = 5})})
            for (const Knobs &family : families)
              for (const Configuration &configuration :
                   collect.drawFamily(ended, family, headDim == 64 ? 4 : 1))
                collect.add("attention-ended", ended, type, configuration);
      }
  // Few queries and many keys: packed heads, warps of keys, splits.
  for (const auto &[headDim, valueDim] : widths)
    for (const int64_t group : {1, 3, 16})
      for (const int64_t queries : {1, 7, 64}) {
        const AttentionExtents extents{
            .b = 2, .h = 3, .g = group, .j = queries, .k = 4099, .p = headDim, .w = valueDim};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        const std::vector<Kernel> kinds = kindsOf(extents, type);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if ((kind + turn) % 4 == 0)
            for (const Configuration &configuration : collect.drawDecoding(kinds[kind], 2))
              collect.add("attention-decoding", kinds[kind], type, configuration);
      }
  // The same by WGMMA: groups that divide the 64 rows of a consumer, and others.
  for (const auto &[headDim, valueDim] : widths)
    for (const int64_t group : {2, 3, 4, 8, 48})
      for (const int64_t queries : {5, 16, 63}) {
        AttentionExtents extents{
            .b = 5, .h = 3, .g = group, .j = queries, .k = 1000, .p = headDim, .w = valueDim};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        std::vector<Kernel> kinds = kindsOf(extents, type, queries > 16);
        extents.distance = 20;
        kinds.push_back(samples::relativeAttention(extents, type, true));
        kinds.push_back(samples::alibiAttention(extents, type));
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if ((kind + turn) % 4 == 0)
            for (const Configuration &configuration :
                 collect.drawFamily(kinds[kind], Sm90AttentionKnobs{}, 1, arePacked))
              collect.add("attention-packed-heads", kinds[kind], type, configuration);
      }
  // Keys of a tile that several blocks share.
  for (const auto &[headDim, valueDim] : widths)
    for (const int64_t group : {1, 3, 4})
      for (const int64_t queries : {65, 200}) {
        AttentionExtents extents{
            .b = 1, .h = 3, .g = group, .j = queries, .k = 4099, .p = headDim, .w = valueDim};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        std::vector<Kernel> kinds = kindsOf(extents, type, false);
        extents.distance = 20;
        kinds.push_back(samples::relativeAttention(extents, type, true));
        kinds.push_back(samples::alibiAttention(extents, type));
        kinds.push_back(samples::documentAttention(extents, type, true));
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if ((kind + turn) % 4 == 0)
            for (const Configuration &configuration :
                 collect.drawFamily(kinds[kind], Sm90AttentionKnobs{}, 1, areSplit))
              collect.add("attention-split-keys", kinds[kind], type, configuration);
      }
  // Queries that are turned: styles, parts of heads, caches, packed tokens.
  const samples::RotaryForm forms[] = {{},
                                       {.isHalved = false},
                                       {.isReverse = true, .turned = 32},
                                       {.factor = 8, .isStretched = true}};
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths)
      for (const int64_t width : {32, 64, 80, 128, 256})
        for (const samples::RotaryForm &form : forms) {
          AttentionExtents extents = one;
          extents.p = extents.w = width;
          if (++turn % 3 != 0 && width != 128) continue;
          const Kernel kernel = samples::turnedAttention(extents, type, form, turn % 2 == 0);
          for (const Knobs &family : families)
            for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
              collect.add("attention-turned", kernel, type, configuration);
        }
  for (const int64_t width : {64, 128})
    for (const int64_t group : {1, 4})
      for (const int64_t queries : {1, 16, 200}) {
        const AttentionExtents extents{
            .b = 3, .h = 3, .g = group, .j = queries, .k = 2051, .p = width, .w = width};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        const Kernel kernel =
            samples::turnedCachedAttention(extents, type, {.isHalved = width == 128});
        for (const Configuration &configuration : collect.drawDecoding(kernel, 2))
          collect.add("attention-turned", kernel, type, configuration);
        for (bool (*const isWanted)(const Knobs &) : {arePacked, areSplit})
          for (const Configuration &configuration :
               collect.drawFamily(kernel, Sm90AttentionKnobs{}, 2, isWanted))
            collect.add("attention-turned", kernel, type, configuration);
      }
  for (const AttentionExtents &one : packedExtents)
    for (const int64_t width : {64, 128}) {
      AttentionExtents extents = one;
      extents.p = extents.w = width;
      const Kernel kernel = samples::turnedPackedAttention(
          extents, DType::f16, {.isHalved = ++turn % 2 == 0}, turn % 3 == 0);
      for (const Knobs &family : families)
        for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
          collect.add("attention-turned", kernel, DType::f16, configuration);
    }
}

void addHardAttentions(Collector &collect) {
  for (const samples::ScoreKind scores : samples::adversarialScores)
    for (const DType type : {DType::f16, DType::bf16})
      for (const int64_t width : {64, 128}) {
        const AttentionExtents extents{
            .b = 2, .h = 2, .g = 2, .j = 333, .k = 777, .p = width, .w = width};
        for (const Kernel &kernel : {samples::plainAttention(extents, type, true),
                                     samples::windowAttention(extents, type, 3, 0)})
          for (const Knobs &family : {Knobs(Sm90AttentionKnobs{}), Knobs(Sm80AttentionKnobs{})})
            for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
              collect.add("attention-hard", kernel, type, configuration, Inputs::hard, scores);
      }
}

void addHardAttentionBackwards(Collector &collect) {
  // Of more queries than keys the first ones see none.
  const AttentionExtents lengths[] = {{.b = 2, .h = 2, .j = 1, .k = 1},
                                      {.b = 1, .h = 2, .j = 63, .k = 65},
                                      {.b = 1, .h = 1, .g = 2, .j = 201, .k = 133}};
  const std::pair<Knobs, bool (*)(const Knobs &)> families[] = {
      {Sm90AttentionBackwardKnobs{}, isNotApart},
      {Sm90AttentionBackwardKnobs{}, isApart},
      {Sm80AttentionBackwardKnobs{}, Collector::isAny}};
  for (const samples::ScoreKind scores : samples::adversarialScores)
    for (const DType type : {DType::f16, DType::bf16})
      for (const AttentionExtents &one : lengths)
        for (const int64_t width : {64, 128}) {
          AttentionExtents extents = one;
          extents.p = extents.w = width;
          for (const Kernel &kernel :
               {samples::plainBackward(extents, type), samples::causalBackward(extents, type),
                samples::windowBackward(extents, type, 3, 0)})
            for (const auto &[family, isAsked] : families)
              for (const Configuration &configuration :
                   collect.drawFamily(kernel, family, 1, isAsked))
                collect.add("attention-backward-hard", kernel, type, configuration, Inputs::hard,
                            scores);
        }
}

void addUnreadAttentions(Collector &collect) {
  const Knobs forward[] = {Sm90AttentionKnobs{}, Sm80AttentionKnobs{}},
              backward[] = {Sm90AttentionBackwardKnobs{}, Sm80AttentionBackwardKnobs{}};
  const auto add = [&](const std::string &group, const Kernel &kernel, DType type,
                       std::span<const Knobs> families) {
    for (const Knobs &family : families)
      for (const Configuration &configuration : collect.drawFamily(kernel, family, 3))
        collect.add(group, kernel, type, configuration, Inputs::unread);
  };
  for (const DType type : {DType::f16, DType::bf16})
    for (const int64_t width : {64, 80, 128}) {
      const AttentionExtents padded{
          .b = 5, .h = 2, .g = 2, .j = 133, .k = 1111, .p = width, .w = width};
      for (const bool isCausal : {false, true})
        add("attention-unread", samples::paddedAttention(padded, type, isCausal), type, forward);
      add("attention-backward-unread", samples::paddedBackward(padded, type), type, backward);
      for (AttentionExtents packed : packedExtents) {
        packed.p = packed.w = width;
        packed.tokens += 77;  // behind the last sequence, however long all are
        for (const bool isCausal : {false, true}) {
          add("attention-unread", samples::packedAttention(packed, type, true, isCausal), type,
              forward);
          add("attention-backward-unread", samples::packedBackward(packed, type, true, isCausal),
              type, backward);
        }
      }
    }
}

namespace {

/// Extents, a mask or score op, dropout and layouts by the dice of the collector.
AttentionExtents drawExtents(Collector &collect, int64_t mostWidth) {
  const auto draw = [&](int64_t least, int64_t most) {
    return least + int64_t(collect.below(size_t(most - least + 1)));
  };
  // Short and long lengths alike.
  const auto length = [&] { return draw(1, int64_t(1) << draw(3, 10)); };
  AttentionExtents extents{.b = draw(1, 3),
                           .h = draw(1, 4),
                           .g = draw(0, 2) == 0 ? draw(2, 4) : 1,
                           .j = length(),
                           .k = length()};
  extents.p = 8 * draw(1, mostWidth / 8);
  extents.w = draw(0, 2) == 0 ? 8 * draw(1, mostWidth / 8) : extents.p;
  return extents;
}

}  // namespace

void addDrawnAttentions(Collector &collect) {
  constexpr size_t forward = 1000, backward = 500;
  const auto hasBlocks = [](const AttentionExtents &extents) {
    return std::min(extents.j, extents.k) > 128;
  };
  const auto isDone = [](size_t made, size_t wanted, size_t attempt) {
    return made >= wanted || attempt >= 8 * wanted;
  };
  size_t made = 0;
  for (size_t attempt = 0; !isDone(made, forward, attempt); ++attempt) {
    const DType type = collect.below(2) == 0 ? DType::f16 : DType::bf16;
    const AttentionExtents extents = drawExtents(collect, 256);
    const std::vector<Kernel> kinds = kindsOf(extents, type, hasBlocks(extents));
    const Kernel &kernel = kinds[collect.below(kinds.size())];
    const Knobs family =
        collect.below(2) == 0 ? Knobs(Sm90AttentionKnobs{}) : Knobs(Sm80AttentionKnobs{});
    for (const Configuration &configuration : collect.drawFamily(kernel, family, 1)) {
      collect.add("attention-drawn", kernel, type, configuration);
      ++made;
    }
  }
  made = 0;
  for (size_t attempt = 0; !isDone(made, backward, attempt); ++attempt) {
    const DType type = collect.below(2) == 0 ? DType::f16 : DType::bf16;
    const AttentionExtents extents = drawExtents(collect, 128);
    const std::vector<Kernel> kinds = backwardsOf(extents, type, hasBlocks(extents));
    const Kernel &kernel = kinds[collect.below(kinds.size())];
    const Knobs family = collect.below(2) == 0 ? Knobs(Sm90AttentionBackwardKnobs{})
                                               : Knobs(Sm80AttentionBackwardKnobs{});
    for (const Configuration &configuration : collect.drawFamily(kernel, family, 1)) {
      collect.add("attention-backward-drawn", kernel, type, configuration);
      ++made;
    }
  }
}

void addAttentionBackwards(Collector &collect) {
  const AttentionExtents lengths[] = {{.b = 2, .h = 3, .j = 1, .k = 1},
                                      {.b = 1, .h = 2, .j = 63, .k = 65},
                                      {.b = 2, .h = 2, .g = 2, .j = 65, .k = 257},
                                      {.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
                                      {.b = 1, .h = 2, .j = 512, .k = 512}};
  const std::pair<int64_t, int64_t> widths[] = {{64, 64},   {128, 128}, {16, 16},  {32, 48},
                                                {40, 40},   {72, 72},   {80, 80},  {96, 96},
                                                {192, 128}, {192, 192}, {256, 256}};
  size_t turn = 0;
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths)
      for (const auto &[headDim, valueDim] : widths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        const std::vector<Kernel> kinds = backwardsOf(extents, type);
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if (isUsual || (kind + ++turn) % 4 == 0)
            for (const Knobs &family :
                 {Knobs(Sm90AttentionBackwardKnobs{}), Knobs(Sm80AttentionBackwardKnobs{})})
              for (const Configuration &configuration :
                   collect.drawFamily(kinds[kind], family, isUsual ? 3 : 1, isNotApart))
                collect.add("attention-backward", kinds[kind], type, configuration);
      }
  // f32 that is read as tf32.
  for (const AttentionExtents &one : lengths)
    for (const auto &[headDim, valueDim] : widths) {
      AttentionExtents extents = one;
      extents.p = headDim, extents.w = valueDim;
      const std::vector<Kernel> kinds = backwardsOf(extents, DType::f32);
      for (size_t kind = 0; kind < kinds.size(); ++kind)
        if ((kind + ++turn) % 4 == 0)
          for (const Kernel kernel = samples::inTf32(kinds[kind]);
               const Configuration &configuration :
               collect.drawFamily(kernel, Sm80AttentionBackwardKnobs{}, 1))
            collect.add("attention-backward-tf32", kernel, nameOf(samples::tf32Types),
                        configuration);
    }
}

void addPackedTraining(Collector &collect) {
  const std::pair<int64_t, int64_t> widths[] = {{64, 64}, {128, 128}, {16, 16}, {32, 48},
                                                {40, 40}, {72, 72},   {80, 80}, {96, 96}};
  const Dropout dropout{.p = 0.3, .stream = 5};
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : packedExtents)
      for (const auto &[headDim, valueDim] : widths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        for (const bool isCausal : {false, true})
          for (const Kernel kernel =
                   samples::packedAttention(extents, type, true, isCausal, std::nullopt, true);
               const Knobs &family : {Knobs(Sm90AttentionKnobs{}), Knobs(Sm80AttentionKnobs{})})
            for (const Configuration &configuration : collect.drawFamily(kernel, family, 1))
              collect.add("attention-packed-sums", kernel, type, configuration);
        for (const Kernel &kernel : {samples::packedBackward(extents, type, false),
                                     samples::packedBackward(extents, type, true),
                                     samples::packedBackward(extents, type, true, true),
                                     samples::packedBackward(extents, type, true, false, dropout)})
          for (const Knobs &family :
               {Knobs(Sm90AttentionBackwardKnobs{}), Knobs(Sm80AttentionBackwardKnobs{})})
            for (const Configuration &configuration :
                 collect.drawFamily(kernel, family, isUsual ? 3 : 1))
              collect.add("attention-backward-packed", kernel, type, configuration);
        const Kernel kernel =
            samples::inTf32(samples::packedBackward(extents, DType::f32, true, true));
        if (type == DType::f16)
          for (const Configuration &configuration :
               collect.drawFamily(kernel, Sm80AttentionBackwardKnobs{}, 1))
            collect.add("attention-backward-packed", kernel, nameOf(samples::tf32Types),
                        configuration);
      }
}

void addUnorderedAttentionBackwards(Collector &collect) {
  // Many tiles of keys, so that blocks add to the same sums at a time.
  const AttentionExtents lengths[] = {{.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
                                      {.b = 1, .h = 1, .j = 512, .k = 4099},
                                      {.b = 2, .h = 4, .g = 2, .j = 2111, .k = 2111}};
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths)
      for (const int64_t width : {64, 80, 128}) {
        AttentionExtents extents = one;
        extents.p = extents.w = width;
        for (const Kernel &kernel : backwardsOf(extents, type))
          for (Configuration &configuration :
               collect.drawFamily(kernel, Sm90AttentionBackwardKnobs{}, 1, isNotApart)) {
            configuration.knobs.get<Sm90AttentionBackwardKnobs>().sums = GradientSums::unordered;
            collect.add("attention-backward-unordered", kernel, type, configuration);
          }
      }
}

void addSplitAttentionBackwards(Collector &collect) {
  const AttentionExtents lengths[] = {{.b = 2, .h = 3, .j = 1, .k = 1},
                                      {.b = 2, .h = 2, .g = 2, .j = 65, .k = 257},
                                      {.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
                                      {.b = 1, .h = 2, .j = 512, .k = 512},
                                      {.b = 3, .h = 12, .g = 2, .j = 700, .k = 700}};
  const std::pair<int64_t, int64_t> widths[] = {{64, 64}, {128, 128}, {16, 16}, {32, 48},
                                                {40, 40}, {72, 72},   {80, 80}, {96, 96}};
  size_t turn = 0;
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths)
      for (const auto &[headDim, valueDim] : widths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        std::vector<Kernel> kinds = backwardsOf(extents, type);
        // Global tiles are taken of all heads before others.
        kinds.push_back(
            samples::blockBackward(extents, type, "longformer(block=64,window=1,global=1)"));
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if (isUsual || (kind + ++turn) % 3 == 0)
            for (const Configuration &configuration :
                 collect.drawFamily(kinds[kind], Sm90AttentionBackwardKnobs{}, 2, isApart))
              collect.add("attention-backward-apart", kinds[kind], type, configuration);
        // Of groups, tiles of keys of some heads each.
        if (one.g == 1) continue;
        for (const bool isCausal : {false, true}) {
          const Kernel kernel = samples::blockBackward(
              extents, type, "random(block=64,density=0.3,seed=5,heads=each)", true, isCausal);
          for (const Configuration &configuration :
               collect.drawFamily(kernel, Sm90AttentionBackwardKnobs{}, 2, isApartInParts))
            collect.add("attention-backward-apart-parts", kernel, type, configuration);
        }
      }
  // Parts without tables, of both forms, where keys of a tile and groups are few.
  for (const DType type : {DType::f16, DType::bf16})
    for (const auto &[headDim, valueDim] : widths)
      for (const int64_t group : {2, 3, 8})
        for (const int64_t length : {65, 512, 1100}) {
          const AttentionExtents extents{
              .b = 1, .h = 2, .g = group, .j = length, .k = length, .p = headDim, .w = valueDim};
          const std::vector<Kernel> kinds = backwardsOf(extents, type, false);
          for (size_t kind = 0; kind < kinds.size(); ++kind)
            if ((kind + ++turn) % 3 == 0)
              for (const auto &[name, isAsked] :
                   {std::pair("attention-backward-apart-parts", &isApartInParts),
                    {"attention-backward-parts", &isTogetherInParts}})
                for (const Configuration &configuration :
                     collect.drawFamily(kinds[kind], Sm90AttentionBackwardKnobs{}, 1, isAsked))
                  collect.add(name, kinds[kind], type, configuration);
        }
}

}  // namespace weft::gputest
