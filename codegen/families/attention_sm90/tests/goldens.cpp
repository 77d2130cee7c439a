// Fused attentions on sm_90a whose emitted text is recorded in ../golden.
#include "codegen/families/attention_sm90/Sm90AttentionKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleAttentions.h"

namespace weft {
namespace {

/// The widest tile, every head alone.
Golden plainGolden() {
  return {"attention_sm90_f16",
          samples::plainAttention({.b = 8, .h = 16, .j = 512, .k = 512}, DType::f16),
          {}};
}

/// Causal, heads in groups, with the logarithms of sums.
Golden causalGolden() {
  return {
      "attention_causal_sm90_bf16",
      samples::causalAttention({.b = 1, .h = 8, .g = 4, .j = 2048, .k = 2048, .p = 128, .w = 128},
                               DType::bf16, true),
      {}};
}

/// A value op and a mask, and lengths that are known at run time.
Golden slopedGolden() {
  return {"attention_sloped_sm90_f16",
          samples::slopedAttention({.b = 2, .h = 12, .j = 777, .k = 777}, DType::f16),
          {}};
}
Golden paddedGolden() {
  return {"attention_padded_sm90_f16",
          samples::paddedAttention({.b = 16, .h = 12, .j = 256, .k = 256}, DType::f16),
          {}};
}

/// A table of tiles for each head.
Golden blockGolden() {
  return {"attention_pattern_sm90_f16",
          samples::blockAttention({.b = 1, .h = 4, .j = 2048, .k = 2048}, DType::f16,
                                  "bigbird(block=64,window=3,global=2,random=3,seed=0,heads=each)",
                                  true),
          {}};
}

/// Few tiles: consumers share rows.
Golden sharedGolden() {
  return {"attention_shared_rows_sm90_f16",
          samples::plainAttention({.b = 1, .h = 12, .j = 616, .k = 616}, DType::f16),
          {}};
}

/// Few queries of many keys: rows of a tile are of all heads of a group.
Golden packedHeadsGolden() {
  return {"attention_packed_heads_sm90_f16",
          samples::causalAttention(
              {.b = 16, .h = 8, .g = 4, .j = 16, .k = 4096, .p = 128, .w = 128}, DType::f16, true),
          {}};
}

/// Few tiles and many keys: blocks share the keys of a tile.
Golden splitKeysGolden() {
  return {"attention_split_keys_sm90_bf16",
          samples::causalAttention(
              {.b = 1, .h = 8, .g = 4, .j = 64, .k = 32768, .p = 128, .w = 128}, DType::bf16, true),
          {}};
}

/// Queries that are turned by where they stand behind a cache.
Golden rotatedGolden() {
  return {"attention_rotated_sm90_f16",
          samples::rotatedCachedAttention(
              {.b = 2, .h = 8, .g = 4, .j = 256, .k = 1024, .p = 128, .w = 128}, DType::f16, {}),
          {}};
}

std::vector<Golden> goldens() {
  std::vector<Golden> all = {plainGolden(),       causalGolden(),    slopedGolden(),
                             paddedGolden(),      blockGolden(),     sharedGolden(),
                             packedHeadsGolden(), splitKeysGolden(), rotatedGolden()};
  const Sm90AttentionKnobs knobs[] = {
      {.tileQueries = 192, .tileKeys = 128, .queryStages = 2},
      {.tileQueries = 128, .tileKeys = 128, .headGroup = 16},
      {.tileQueries = 128, .tileKeys = 128, .queryStages = 2, .headGroup = 8},
      {.tileQueries = 64, .tileKeys = 128, .queryStages = 2, .ordered = 0, .blocks = 264},
      {.tileQueries = 128, .tileKeys = 64, .queryStages = 2, .ordered = 0, .headGroup = 4},
      {.tileQueries = 64, .tileKeys = 128, .stages = 4, .ordered = 0, .keyConsumers = 2},
      {.tileQueries = 64, .tileKeys = 128, .ordered = 0, .headGroup = 512, .packed = 1},
      {.tileQueries = 128, .tileKeys = 112, .ordered = 0, .packed = 1, .splits = 8},
      {.tileQueries = 128, .tileKeys = 128, .headGroup = 16}};
  for (size_t i = 0; i < all.size(); ++i)
    all[i].configuration = examples::rowMajorConfiguration(all[i].kernel, knobs[i]);
  return all;
}

const GoldenRegistration registered("codegen/families/attention_sm90", goldens);

}  // namespace
}  // namespace weft
