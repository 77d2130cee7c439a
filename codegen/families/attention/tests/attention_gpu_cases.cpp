#include "codegen/families/attention/tests/AttentionCases.h"

#include <algorithm>
#include <optional>

namespace weft::gputest {

std::vector<Kernel> kindsOf(const AttentionExtents &extents, DType type, bool hasBlocks) {
  std::vector<Kernel> kinds = {samples::plainAttention(extents, type),
                               samples::plainAttention(extents, type, true),
                               samples::causalAttention(extents, type, true),
                               samples::windowAttention(extents, type, 17, 40),
                               samples::windowAttention(extents, type, 9, 9, 33),
                               samples::paddedAttention(extents, type),
                               samples::paddedAttention(extents, type, true),
                               samples::biasedAttention(extents, type),
                               samples::cappedAttention(extents, type),
                               samples::droppedAttention(extents, type, {.p = 0.3, .stream = 5}),
                               samples::alibiAttention(extents, type)};
  AttentionExtents far = extents;
  far.distance = 20;
  for (const bool isCausal : {false, true})
    kinds.push_back(samples::relativeAttention(far, type, isCausal));
  if (extents.k >= extents.j)
    for (const bool hasBounds : {false, true}) {
      AttentionExtents own = extents;
      own.hasBounds = hasBounds;
      kinds.push_back(samples::documentAttention(own, type, !hasBounds));
    }
  if (hasBlocks) {
    kinds.push_back(samples::blockAttention(extents, type, ofAllHeads));
    kinds.push_back(samples::blockAttention(extents, type, ofEachHead, true, true, true));
  }
  return kinds;
}

void addAttentions(Collector &collect, const DrawnFamily &family) {
  KindsInTurn turn(4);  // the widths of most models have every kind at every length
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : attentionLengths) {
      turn.nextLength();
      for (const auto &[headDim, valueDim] : headWidths) {
        turn.nextWidth();
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        const std::vector<Kernel> kinds = kindsOf(extents, type);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if (isUsual || turn.takes(kind))
            for (const Configuration &configuration : collect.drawFamily(kinds[kind], family, 1))
              collect.add("attention", kinds[kind], type, configuration);
      }
    }
  // Gathered from a row for each query and each key.
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : attentionLengths)
      for (const int64_t width : {32, 64, 128}) {
        AttentionExtents extents = one;
        extents.p = extents.w = width, extents.distance = 20;
        const Kernel kernel = samples::disentangledAttention(extents, type, width == 64);
        for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
          collect.add("attention", kernel, type, configuration);
      }
}

void addPackedAttentions(Collector &collect, const DrawnFamily &family) {
  // Packed tokens: offsets ascend by any steps, and lengths have nothing to do with them.
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : packedExtents)
      for (const auto &[headDim, valueDim] : headWidths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        for (const Kernel &kernel :
             {samples::packedAttention(extents, type, false),
              samples::packedAttention(extents, type, true),
              samples::packedAttention(extents, type, true, true),
              samples::packedAttention(extents, type, true, false, Dropout{.p = 0.3, .stream = 5})})
          for (const Configuration &configuration :
               collect.drawFamily(kernel, family, headDim == 64 ? 4 : 1))
            collect.add("attention-packed", kernel, type, configuration);
        // Masks by the lengths that were packed, which kernels of WGMMA leave out.
        for (const bool isUnread : {false, true})
          for (const Kernel &ended : {samples::endedAttention(extents, type, isUnread),
                                      samples::endedAttention(extents, type, isUnread, true),
                                      samples::endedAttention(extents, type, isUnread, false,
                                                              Dropout{.p = 0.3, .stream = 5})})
            for (const Configuration &configuration :
                 collect.drawFamily(ended, family, headDim == 64 ? 4 : 1))
              collect.add("attention-ended", ended, type, configuration);
      }
}

void addPackedSums(Collector &collect, const DrawnFamily &family) {
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : packedExtents)
      for (const auto &[headDim, valueDim] : packedWidths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        for (const bool isCausal : {false, true}) {
          const Kernel kernel =
              samples::packedAttention(extents, type, true, isCausal, std::nullopt, true);
          for (const Configuration &configuration : collect.drawFamily(kernel, family, 1))
            collect.add("attention-packed-sums", kernel, type, configuration);
        }
      }
}

void addRotatedAttentions(Collector &collect, const DrawnFamily &family) {
  size_t turn = 0;
  // Queries that are turned: styles, parts of heads, caches, packed tokens.
  const samples::RotaryForm forms[] = {{},
                                       {.isHalved = false},
                                       {.isReverse = true, .turned = 32},
                                       {.factor = 8, .isStretched = true}};
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : attentionLengths)
      for (const int64_t width : {32, 64, 80, 128, 256})
        for (const samples::RotaryForm &form : forms) {
          AttentionExtents extents = one;
          extents.p = extents.w = width;
          if (++turn % 3 != 0 && width != 128) continue;
          const Kernel kernel = samples::rotatedAttention(extents, type, form, turn % 2 == 0);
          for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
            collect.add("attention-turned", kernel, type, configuration);
        }
  for (const AttentionExtents &one : packedExtents)
    for (const int64_t width : {64, 128}) {
      AttentionExtents extents = one;
      extents.p = extents.w = width;
      const Kernel kernel = samples::rotatedPackedAttention(
          extents, DType::f16, {.isHalved = ++turn % 2 == 0}, turn % 3 == 0);
      for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
        collect.add("attention-turned", kernel, DType::f16, configuration);
    }
}

void addHardAttentions(Collector &collect, const DrawnFamily &family) {
  for (const samples::ScoreKind scores : samples::adversarialScores)
    for (const DType type : {DType::f16, DType::bf16})
      for (const int64_t width : {64, 128}) {
        const AttentionExtents extents{
            .b = 2, .h = 2, .g = 2, .j = 333, .k = 777, .p = width, .w = width};
        for (const Kernel &kernel : {samples::plainAttention(extents, type, true),
                                     samples::windowAttention(extents, type, 3, 0)})
          for (const Configuration &configuration : collect.drawFamily(kernel, family, 2))
            collect.add("attention-hard", kernel, type, configuration, Inputs::hard, scores);
      }
}

void addUnreadAttentions(Collector &collect, const DrawnFamily &family) {
  const auto add = [&](const Kernel &kernel, DType type) {
    for (const Configuration &configuration : collect.drawFamily(kernel, family, 3))
      collect.add("attention-unread", kernel, type, configuration, Inputs::unread);
  };
  for (const DType type : {DType::f16, DType::bf16})
    for (const int64_t width : {64, 80, 128}) {
      const AttentionExtents padded{
          .b = 5, .h = 2, .g = 2, .j = 133, .k = 1111, .p = width, .w = width};
      for (const bool isCausal : {false, true})
        add(samples::paddedAttention(padded, type, isCausal), type);
      for (AttentionExtents packed : packedExtents) {
        packed.p = packed.w = width;
        packed.tokens += 77;  // behind the last sequence, however long all are
        for (const bool isCausal : {false, true})
          add(samples::packedAttention(packed, type, true, isCausal), type);
      }
    }
}

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

void addDrawnAttentions(Collector &collect, const DrawnFamily &family) {
  constexpr size_t wanted = 500;
  for (size_t made = 0, attempt = 0; made < wanted && attempt < 8 * wanted; ++attempt) {
    const DType type = collect.below(2) == 0 ? DType::f16 : DType::bf16;
    const AttentionExtents extents = drawExtents(collect, 256);
    const bool hasBlocks = std::min(extents.j, extents.k) > 128;
    const std::vector<Kernel> kinds = kindsOf(extents, type, hasBlocks);
    const Kernel &kernel = kinds[collect.below(kinds.size())];
    for (const Configuration &configuration : collect.drawFamily(kernel, family, 1)) {
      collect.add("attention-drawn", kernel, type, configuration);
      ++made;
    }
  }
}

}  // namespace weft::gputest
