// Backward passes of fused attention by mma.sync whose emitted text is recorded in ../golden.
#include "codegen/families/attention_backward_sm80/Sm80AttentionBackwardKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"
#include "tests/unit/samples/SampleTf32.h"

namespace weft {
namespace {

using samples::AttentionExtents;

Golden golden(const char *name, Kernel kernel, const Sm80AttentionBackwardKnobs &knobs) {
  const Configuration configuration = examples::rowMajorConfiguration(kernel, knobs);
  return {name, std::move(kernel), configuration};
}

/// Causal with dropout, heads in groups; then a soft cap in a window, and values wider than keys;
/// then f32 that is read as tf32; then packed tokens.
std::vector<Golden> goldens() {
  const AttentionExtents groups{.b = 2, .h = 8, .g = 4, .j = 512, .k = 512, .p = 128, .w = 128},
      odd{.b = 8, .h = 12, .g = 1, .j = 197, .k = 333, .p = 40, .w = 64},
      tokens{.b = 16, .h = 12, .j = 512, .k = 512, .tokens = 8192};
  return {golden("attention_backward_causal_sm80_bf16",
                 samples::causalBackward(groups, DType::bf16, Dropout{.p = 0.1, .stream = 3}),
                 {.tileRows = 64, .tileColumns = 32, .stages = 2}),
          golden("attention_backward_capped_sm80_f16", samples::cappedBackward(odd, DType::f16),
                 {.tileRows = 128, .tileColumns = 64, .stages = 3}),
          golden("attention_backward_causal_sm80_tf32",
                 samples::inTf32(samples::causalBackward(odd, DType::f32)),
                 {.tileRows = 64, .tileColumns = 32, .stages = 2}),
          golden("attention_backward_packed_sm80_f16",
                 samples::packedBackward(tokens, DType::f16, true, true),
                 {.tileRows = 64, .tileColumns = 32, .stages = 2})};
}

const GoldenRegistration registered("codegen/families/attention_backward_sm80", goldens);

}  // namespace
}  // namespace weft
