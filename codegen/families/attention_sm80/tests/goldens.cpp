// Fused attentions by mma.sync whose emitted text is recorded in ../golden.
#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleAttentions.h"
#include "tests/unit/samples/SampleTf32.h"

namespace weft {
namespace {

using samples::AttentionExtents;

Golden golden(const char *name, Kernel kernel, const Sm80AttentionKnobs &knobs) {
  const Configuration configuration = examples::rowMajorConfiguration(kernel, knobs);
  return {name, std::move(kernel), configuration};
}

/// Causal, heads in groups, with the logarithms of sums; then a bias for every score, and values
/// wider than keys; then two queries of packed heads and many keys, which blocks share; then f32
/// that is read as tf32; then dropped probabilities; then packed tokens; then queries that are
/// turned, behind a cache.
std::vector<Golden> goldens() {
  const AttentionExtents groups{.b = 2, .h = 8, .g = 4, .j = 512, .k = 640, .p = 128, .w = 128},
      odd{.b = 8, .h = 12, .g = 1, .j = 197, .k = 333, .p = 40, .w = 64},
      few{.b = 1, .h = 8, .g = 4, .j = 2, .k = 32768, .p = 128, .w = 128},
      tokens{.b = 16, .h = 12, .j = 512, .k = 512, .tokens = 8192},
      cached{.b = 2, .h = 8, .g = 4, .j = 256, .k = 1024, .p = 128, .w = 128};
  return {
      golden("attention_causal_sm80_bf16", samples::causalAttention(groups, DType::bf16, true),
             {.tileQueries = 128, .tileKeys = 64, .stages = 2}),
      golden("attention_biased_sm80_f16", samples::biasedAttention(odd, DType::f16),
             {.tileQueries = 64, .tileKeys = 64, .stages = 3}),
      golden("attention_decoding_sm80_f16", samples::causalAttention(few, DType::f16, true),
             {.tileQueries = 16, .tileKeys = 64, .stages = 3, .packed = 1, .splits = 33}),
      golden("attention_causal_sm80_tf32",
             samples::inTf32(samples::causalAttention(odd, DType::f32, true)),
             {.tileQueries = 64, .tileKeys = 32, .stages = 3}),
      golden("attention_dropped_sm80_bf16",
             samples::droppedAttention(groups, DType::bf16, {.p = 0.1, .stream = 1}, true, true),
             {.tileQueries = 128, .tileKeys = 32, .stages = 2}),
      golden("attention_packed_sm80_f16", samples::packedAttention(tokens, DType::f16, true, true),
             {.tileQueries = 64, .tileKeys = 32, .stages = 2}),
      golden("attention_rotated_sm80_f16", samples::rotatedCachedAttention(cached, DType::f16, {}),
             {.tileQueries = 64, .tileKeys = 32, .stages = 3})};
}

const GoldenRegistration registered("codegen/families/attention_sm80", goldens);

}  // namespace
}  // namespace weft
