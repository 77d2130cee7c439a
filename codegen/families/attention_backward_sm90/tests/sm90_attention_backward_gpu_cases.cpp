// Cases of the backward pass of fused attention by WGMMA for the GPU: those of all families
// (BackwardCases.h), and
//   attention-backward-apart        without sums in a workspace
//   attention-backward-parts        of some heads of a group a tile of keys;
//                                   attention-backward-apart-parts: without sums in a workspace
//   attention-backward-unordered    with these in any order
//   attention-backward-single       tiles of one gradient, of heads of more than 128 columns;
//                                   attention-backward-wide: gradients apart of such heads
#include "codegen/families/attention_backward/tests/BackwardCases.h"
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"

#include <utility>

namespace weft::gputest {
namespace {

const DrawnFamily sm90 = Sm90AttentionBackwardKnobs{};

template <BackwardGradients form>
bool isOfForm(const Knobs &any) {
  const auto *knobs = any.getIf<Sm90AttentionBackwardKnobs>();
  return knobs && knobs->gradients == form;
}
constexpr KnobTest isApart = isOfForm<BackwardGradients::apart>,
                   isTogether = isOfForm<BackwardGradients::together>,
                   isSingle = isOfForm<BackwardGradients::single>;

bool isApartInParts(const Knobs &any) {
  return isApart(any) && any.get<Sm90AttentionBackwardKnobs>().headsOfTile > 0;
}

bool isTogetherInParts(const Knobs &any) {
  return isTogether(any) && any.get<Sm90AttentionBackwardKnobs>().headsOfTile > 0;
}

void addTogether(Collector &collect) { addAttentionBackwards(collect, sm90, isTogether); }

void addPacked(Collector &collect) { addPackedBackwards(collect, sm90); }

/// Adversarial scores of all forms, inputs that nothing may read, and drawn ones.
void addAdversarial(Collector &collect) {
  addHardAttentionBackwards(collect, sm90, isTogether);
  addHardAttentionBackwards(collect, sm90, isApart);
  addHardAttentionBackwards(collect, sm90, isSingle);
  addUnreadAttentionBackwards(collect, sm90);
  addDrawnAttentionBackwards(collect, sm90, 256);
}

void addUnordered(Collector &collect) {
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
          for (Configuration &configuration : collect.drawFamily(kernel, sm90, 1, isTogether)) {
            configuration.knobs.get<Sm90AttentionBackwardKnobs>().sums = GradientSums::unordered;
            collect.add("attention-backward-unordered", kernel, type, configuration);
          }
      }
}

void addApart(Collector &collect) {
  const AttentionExtents lengths[] = {{.b = 2, .h = 3, .j = 1, .k = 1},
                                      {.b = 2, .h = 2, .g = 2, .j = 65, .k = 257},
                                      {.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
                                      {.b = 1, .h = 2, .j = 512, .k = 512},
                                      {.b = 3, .h = 12, .g = 2, .j = 700, .k = 700}};
  const std::pair<int64_t, int64_t> widths[] = {{64, 64}, {128, 128}, {16, 16}, {32, 48},
                                                {40, 40}, {72, 72},   {80, 80}, {96, 96}};
  KindsInTurn turn(3);
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths) {
      turn.nextLength();
      for (const auto &[headDim, valueDim] : widths) {
        turn.nextWidth();
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        std::vector<Kernel> kinds = backwardsOf(extents, type);
        // Global tiles are taken of all heads before others.
        kinds.push_back(
            samples::blockBackward(extents, type, "longformer(block=64,window=1,global=1)"));
        const bool isUsual = headDim == valueDim && (headDim == 64 || headDim == 128);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if (isUsual || turn.takes(kind))
            for (const Configuration &configuration :
                 collect.drawFamily(kinds[kind], sm90, 2, isApart))
              collect.add("attention-backward-apart", kinds[kind], type, configuration);
        // Of groups, tiles of keys of some heads each.
        if (one.g == 1) continue;
        for (const bool isCausal : {false, true}) {
          const Kernel kernel = samples::blockBackward(
              extents, type, "random(block=64,density=0.3,seed=5,heads=each)", true, isCausal);
          for (const Configuration &configuration :
               collect.drawFamily(kernel, sm90, 2, isApartInParts))
            collect.add("attention-backward-apart-parts", kernel, type, configuration);
        }
      }
    }
  // Parts without tables, of both forms, where keys of a tile and groups are few.
  for (const DType type : {DType::f16, DType::bf16})
    for (const auto &[headDim, valueDim] : widths) {
      turn.nextLength();
      for (const int64_t group : {2, 3, 8})
        for (const int64_t length : {65, 512, 1100}) {
          turn.nextWidth();
          const AttentionExtents extents{
              .b = 1, .h = 2, .g = group, .j = length, .k = length, .p = headDim, .w = valueDim};
          const std::vector<Kernel> kinds = backwardsOf(extents, type, false);
          for (size_t kind = 0; kind < kinds.size(); ++kind)
            if (turn.takes(kind))
              for (const auto &[name, isAsked] :
                   {std::pair("attention-backward-apart-parts", &isApartInParts),
                    {"attention-backward-parts", &isTogetherInParts}})
                for (const Configuration &configuration :
                     collect.drawFamily(kinds[kind], sm90, 1, isAsked))
                  collect.add(name, kinds[kind], type, configuration);
        }
    }
}

void addSingle(Collector &collect) {
  // The last ones: several tiles a block, more blocks of a tile than places, keys of no query.
  const AttentionExtents lengths[] = {{.b = 2, .h = 3, .j = 1, .k = 1},
                                      {.b = 2, .h = 2, .g = 2, .j = 65, .k = 257},
                                      {.b = 1, .h = 3, .g = 3, .j = 333, .k = 129},
                                      {.b = 1, .h = 2, .j = 512, .k = 512},
                                      {.b = 3, .h = 12, .g = 2, .j = 700, .k = 700},
                                      {.b = 2, .h = 8, .g = 2, .j = 201, .k = 1333}};
  const std::pair<int64_t, int64_t> widths[] = {{256, 256}, {192, 192}, {192, 128}, {128, 192},
                                                {136, 256}, {240, 64},  {224, 224}, {200, 24}};
  KindsInTurn turn(3);
  for (const DType type : {DType::f16, DType::bf16})
    for (const AttentionExtents &one : lengths) {
      turn.nextLength();
      for (const auto &[headDim, valueDim] : widths) {
        turn.nextWidth();
        AttentionExtents extents = one;
        extents.p = headDim, extents.w = valueDim;
        std::vector<Kernel> kinds = backwardsOf(extents, type);
        kinds.push_back(
            samples::blockBackward(extents, type, "longformer(block=64,window=1,global=1)"));
        const bool isUsual = headDim == valueDim && headDim != 224;
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if (isUsual || turn.takes(kind))
            for (const auto &[name, isWanted] : {std::pair("attention-backward-single", isSingle),
                                                 {"attention-backward-wide", isApart}})
              for (const Configuration &configuration :
                   collect.drawFamily(kinds[kind], sm90, 1, isWanted))
                collect.add(name, kinds[kind], type, configuration);
      }
    }
}

const CaseRegistration registered("attention-backward-sm90", addTogether);
const CaseRegistration packedRegistered("attention-backward-sm90 packed", addPacked);
const CaseRegistration adversarialRegistered("attention-backward-sm90 adversarial", addAdversarial);
const CaseRegistration unorderedRegistered("attention-backward-sm90 unordered", addUnordered);
const CaseRegistration singleRegistered("attention-backward-sm90 single", addSingle);
const CaseRegistration apartRegistered("attention-backward-sm90 apart", addApart);

}  // namespace
}  // namespace weft::gputest
