// Cases of fused attention by WGMMA for the GPU: those of all families (AttentionCases.h), and
//   attention-long          thousands of keys
//   attention-packed-heads  rows of tiles of all heads of a group
//   attention-split-keys    blocks that share the keys of a tile
#include "codegen/families/attention/tests/AttentionCases.h"
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"

namespace weft::gputest {
namespace {

const DrawnFamily sm90 = Sm90AttentionKnobs{};

bool arePacked(const Knobs &any) {
  const auto *knobs = any.getIf<Sm90AttentionKnobs>();
  return knobs && knobs->packed != 0;
}

bool areSplit(const Knobs &any) {
  const auto *knobs = any.getIf<Sm90AttentionKnobs>();
  return knobs && knobs->splits > 1;
}

void addKinds(Collector &collect) { addAttentions(collect, sm90); }

/// Thousands of keys.
void addLong(Collector &collect) {
  for (const int64_t width : {64, 128})
    for (const Kernel &kernel :
         kindsOf({.b = 1, .h = 2, .j = 1111, .k = 4099, .p = width, .w = width}, DType::f16))
      for (const Configuration &configuration : collect.drawFamily(kernel, sm90, 1))
        collect.add("attention-long", kernel, DType::f16, configuration);
}

void addPacked(Collector &collect) {
  addPackedAttentions(collect, sm90);
  addPackedSums(collect, sm90);
}

/// Rows of tiles of all heads of a group: groups that divide the 64 rows of a consumer, and others.
void addPackedHeads(Collector &collect) {
  size_t turn = 0;
  for (const auto &[headDim, valueDim] : headWidths)
    for (const int64_t group : {2, 3, 4, 8, 48})
      for (const int64_t queries : {5, 16, 63}) {
        const AttentionExtents extents{
            .b = 5, .h = 3, .g = group, .j = queries, .k = 1000, .p = headDim, .w = valueDim};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        const std::vector<Kernel> kinds = kindsOf(extents, type, queries > 16);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if ((kind + turn) % 4 == 0)
            for (const Configuration &configuration :
                 collect.drawFamily(kinds[kind], sm90, 1, arePacked))
              collect.add("attention-packed-heads", kinds[kind], type, configuration);
      }
}

/// Keys of a tile that several blocks share.
void addSplitKeys(Collector &collect) {
  size_t turn = 0;
  for (const auto &[headDim, valueDim] : headWidths)
    for (const int64_t group : {1, 3, 4})
      for (const int64_t queries : {65, 200}) {
        const AttentionExtents extents{
            .b = 1, .h = 3, .g = group, .j = queries, .k = 4099, .p = headDim, .w = valueDim};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        const std::vector<Kernel> kinds = kindsOf(extents, type, false);
        for (size_t kind = 0; kind < kinds.size(); ++kind)
          if ((kind + turn) % 4 == 0)
            for (const Configuration &configuration :
                 collect.drawFamily(kinds[kind], sm90, 1, areSplit))
              collect.add("attention-split-keys", kinds[kind], type, configuration);
      }
}

/// Queries that are turned: caches, packed heads and shared keys, too.
void addRotated(Collector &collect) {
  addRotatedAttentions(collect, sm90);
  size_t turn = 0;
  for (const int64_t width : {64, 128})
    for (const int64_t group : {1, 4})
      for (const int64_t queries : {1, 16, 200}) {
        const AttentionExtents extents{
            .b = 3, .h = 3, .g = group, .j = queries, .k = 2051, .p = width, .w = width};
        const DType type = ++turn % 2 == 0 ? DType::f16 : DType::bf16;
        const Kernel kernel =
            samples::rotatedCachedAttention(extents, type, {.isHalved = width == 128});
        for (bool (*const isWanted)(const Knobs &) : {arePacked, areSplit})
          for (const Configuration &configuration : collect.drawFamily(kernel, sm90, 2, isWanted))
            collect.add("attention-turned", kernel, type, configuration);
      }
}

/// Adversarial scores, inputs that nothing may read, and drawn ones.
void addAdversarial(Collector &collect) {
  addHardAttentions(collect, sm90);
  addUnreadAttentions(collect, sm90);
  addDrawnAttentions(collect, sm90);
}

const CaseRegistration registered("attention-sm90", addKinds);
const CaseRegistration longRegistered("attention-sm90 long", addLong);
const CaseRegistration packedRegistered("attention-sm90 packed", addPacked);
const CaseRegistration headsRegistered("attention-sm90 packed heads", addPackedHeads);
const CaseRegistration splitRegistered("attention-sm90 split keys", addSplitKeys);
const CaseRegistration rotatedRegistered("attention-sm90 turned", addRotated);
const CaseRegistration adversarialRegistered("attention-sm90 adversarial", addAdversarial);

}  // namespace
}  // namespace weft::gputest
