// Cases of fused attention by mma.sync for the GPU: those of all families (AttentionCases.h), and
//   attention-tf32      of f32 read as tf32
//   attention-decoding  few queries and many keys
#include "codegen/families/attention/tests/AttentionCases.h"
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "tests/unit/samples/SampleTf32.h"

namespace weft::gputest {
namespace {

const DrawnFamily sm80 = DrawnFamily::fromSm80(Sm80AttentionKnobs{});
/// As an H200 is offered it: of few queries and many keys.
const DrawnFamily decoding = Sm80AttentionKnobs{};

void addKinds(Collector &collect) { addAttentions(collect, sm80); }

/// Of f32 that is read as tf32; also over packed tokens.
void addTf32(Collector &collect) {
  KindsInTurn turn(4);
  for (const AttentionExtents &one : attentionLengths) {
    turn.nextLength();
    for (const auto &[headDim, valueDim] : headWidths) {
      turn.nextWidth();
      AttentionExtents extents = one;
      extents.p = headDim, extents.w = valueDim;
      const std::vector<Kernel> kinds = kindsOf(extents, DType::f32);
      for (size_t kind = 0; kind < kinds.size(); ++kind)
        if (turn.takes(kind))
          for (const Kernel kernel = samples::inTf32(kinds[kind]);
               const Configuration &configuration : collect.drawFamily(kernel, sm80, 1))
            collect.add("attention-tf32", kernel, nameOf(samples::tf32Types), configuration);
    }
  }
  for (const AttentionExtents &one : packedExtents)
    for (const auto &[headDim, valueDim] : headWidths) {
      AttentionExtents extents = one;
      extents.p = headDim, extents.w = valueDim;
      const Kernel kernel =
          samples::inTf32(samples::packedAttention(extents, DType::f32, true, true));
      for (const Configuration &configuration : collect.drawFamily(kernel, sm80, 1))
        collect.add("attention-packed", kernel, nameOf(samples::tf32Types), configuration);
    }
}

void addPacked(Collector &collect) {
  addPackedAttentions(collect, sm80);
  addPackedSums(collect, sm80);
}

/// Few queries and many keys: packed heads, warps of keys, splits.
void addDecoding(Collector &collect) {
  size_t turn = 0;
  for (const auto &[headDim, valueDim] : headWidths)
    for (const int64_t group : {1, 3, 16})
      for (const int64_t queries : {1, 7, 64}) {
        const AttentionExtents extents{
            .b = 2, .h = 3, .g = group, .j = queries, .k = 4099, .p = headDim, .w = valueDim};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        const std::vector<Kernel> kinds = kindsOf(extents, type);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if ((kind + turn) % 4 == 0)
            for (const Configuration &configuration : collect.drawKnobs(kinds[kind], decoding, 2))
              collect.add("attention-decoding", kinds[kind], type, configuration);
      }
}

/// Queries that are turned, also of caches.
void addRotated(Collector &collect) {
  addRotatedAttentions(collect, sm80);
  size_t turn = 0;
  for (const int64_t width : {64, 128})
    for (const int64_t group : {1, 4})
      for (const int64_t queries : {1, 16, 200}) {
        const AttentionExtents extents{
            .b = 3, .h = 3, .g = group, .j = queries, .k = 2051, .p = width, .w = width};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        const Kernel kernel =
            samples::rotatedCachedAttention(extents, type, {.isHalved = width == 128});
        for (const Configuration &configuration : collect.drawKnobs(kernel, decoding, 2))
          collect.add("attention-turned", kernel, type, configuration);
      }
}

/// Adversarial scores, inputs that nothing may read, and drawn ones.
void addAdversarial(Collector &collect) {
  addHardAttentions(collect, sm80);
  addUnreadAttentions(collect, sm80);
  addDrawnAttentions(collect, sm80);
}

const CaseRegistration registered("attention-sm80", addKinds);
const CaseRegistration tf32Registered("attention-sm80 tf32", addTf32);
const CaseRegistration packedRegistered("attention-sm80 packed", addPacked);
const CaseRegistration decodingRegistered("attention-sm80 decoding", addDecoding);
const CaseRegistration rotatedRegistered("attention-sm80 turned", addRotated);
const CaseRegistration adversarialRegistered("attention-sm80 adversarial", addAdversarial);

}  // namespace
}  // namespace weft::gputest
