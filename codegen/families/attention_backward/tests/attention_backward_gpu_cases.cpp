#include "codegen/families/attention_backward/tests/BackwardCases.h"

#include <algorithm>

namespace weft::gputest {

std::vector<Kernel> backwardsOf(const AttentionExtents &extents, DType type, bool hasBlocks) {
  const Dropout dropout{.p = 0.3, .stream = 5};
  std::vector<Kernel> kinds = {samples::plainBackward(extents, type),
                               samples::causalBackward(extents, type),
                               samples::plainBackward(extents, type, dropout),
                               samples::causalBackward(extents, type, dropout),
                               samples::windowBackward(extents, type, 17, 40),
                               samples::paddedBackward(extents, type),
                               samples::biasedBackward(extents, type),
                               samples::biasedBackward(extents, type, true),
                               samples::cappedBackward(extents, type),
                               samples::alibiBackward(extents, type),
                               samples::addedMaskBackward(extents, type)};
  AttentionExtents far = extents;
  far.distance = 20;
  for (const bool isCausal : {false, true})
    kinds.push_back(samples::relativeBackward(far, type, isCausal));
  if (extents.k >= extents.j) kinds.push_back(samples::documentBackward(extents, type));
  if (hasBlocks) {
    kinds.push_back(samples::blockBackward(extents, type, ofAllHeads));
    kinds.push_back(samples::blockBackward(extents, type, ofEachHead, true, true));
  }
  return kinds;
}

void addAttentionBackwards(Collector &collect, const DrawnFamily &family, KnobTest isWanted) {
  KindsInTurn turn(4);
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : backwardLengths) {
      turn.nextLength();
      for (const auto &[headDim, valueDim] : headWidths) {
        turn.nextWidth();
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        const std::vector<Kernel> kinds = backwardsOf(extents, type);
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if (isUsual || turn.takes(kind))
            for (const Configuration &configuration :
                 collect.drawFamily(kinds[kind], family, isUsual ? 3 : 1, isWanted))
              collect.add("attention-backward", kinds[kind], type, configuration);
      }
    }
}

void addHardAttentionBackwards(Collector &collect, const DrawnFamily &family, KnobTest isWanted) {
  // Of more queries than keys the first ones see none.
  const AttentionExtents lengths[] = {{.b = 2, .h = 2, .j = 1, .k = 1},
                                      {.b = 1, .h = 2, .j = 63, .k = 65},
                                      {.b = 1, .h = 1, .g = 2, .j = 201, .k = 133}};
  for (const samples::ScoreKind scores : samples::adversarialScores)
    for (const DType type : {DType::f16, DType::bf16})
      for (const AttentionExtents &one : lengths)
        for (const int64_t width : {64, 128, 192, 256}) {
          AttentionExtents extents = one;
          extents.p = extents.w = width;
          for (const Kernel &kernel :
               {samples::plainBackward(extents, type), samples::causalBackward(extents, type),
                samples::windowBackward(extents, type, 3, 0),
                samples::biasedBackward(extents, type, true),
                samples::cappedBackward(extents, type),
                samples::cappedBackward(extents, type, true)})
            for (const Configuration &configuration :
                 collect.drawFamily(kernel, family, 1, isWanted))
              collect.add("attention-backward-hard", kernel, type, configuration, Inputs::hard,
                          scores);
        }
}

void addPackedBackwards(Collector &collect, const DrawnFamily &family) {
  const Dropout dropout{.p = 0.3, .stream = 5};
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : packedExtents)
      for (const auto &[headDim, valueDim] : packedWidths) {
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        for (const Kernel &kernel : {samples::packedBackward(extents, type, false),
                                     samples::packedBackward(extents, type, true),
                                     samples::packedBackward(extents, type, true, true),
                                     samples::packedBackward(extents, type, true, false, dropout)})
          for (const Configuration &configuration :
               collect.drawFamily(kernel, family, isUsual ? 3 : 1))
            collect.add("attention-backward-packed", kernel, type, configuration);
      }
}

void addUnreadAttentionBackwards(Collector &collect, const DrawnFamily &family) {
  const auto add = [&](const Kernel &kernel, DType type) {
    for (const Configuration &configuration : collect.drawFamily(kernel, family, 3))
      collect.add("attention-backward-unread", kernel, type, configuration, Inputs::unread);
  };
  for (const DType type : {DType::f16, DType::bf16})
    for (const int64_t width : {64, 80, 128}) {
      const AttentionExtents padded{
          .b = 5, .h = 2, .g = 2, .j = 133, .k = 1111, .p = width, .w = width};
      add(samples::paddedBackward(padded, type), type);
      for (AttentionExtents packed : packedExtents) {
        packed.p = packed.w = width;
        packed.tokens += 77;  // behind the last sequence, however long all are
        for (const bool isCausal : {false, true})
          add(samples::packedBackward(packed, type, true, isCausal), type);
      }
    }
}

void addDrawnAttentionBackwards(Collector &collect, const DrawnFamily &family, int64_t mostWidth) {
  constexpr size_t wanted = 250;
  for (size_t made = 0, attempt = 0; made < wanted && attempt < 8 * wanted; ++attempt) {
    const DType type = collect.below(2) == 0 ? DType::f16 : DType::bf16;
    const AttentionExtents extents = drawExtents(collect, mostWidth);
    const bool hasBlocks = std::min(extents.j, extents.k) > 128;
    const std::vector<Kernel> kinds = backwardsOf(extents, type, hasBlocks);
    const Kernel &kernel = kinds[collect.below(kinds.size())];
    for (const Configuration &configuration : collect.drawFamily(kernel, family, 1)) {
      collect.add("attention-backward-drawn", kernel, type, configuration);
      ++made;
    }
  }
}

}  // namespace weft::gputest
