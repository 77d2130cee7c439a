// Fused attention backward on sm_90a whose emitted text is recorded in ../golden.
#include "codegen/families/attention_backward_sm90/Sm90AttentionBackwardKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleAttentionBackwards.h"

namespace weft {
namespace {

std::vector<Golden> goldens() {
  std::vector<Golden> all = {
      {"attention_backward_sm90_f16",
       samples::plainBackward({.b = 8, .h = 16, .j = 512, .k = 512}, DType::f16),
       {}},
      {"attention_backward_causal_sm90_bf16",
       samples::causalBackward({.b = 1, .h = 8, .g = 4, .j = 2048, .k = 2048, .p = 128, .w = 128},
                               DType::bf16),
       {}},
      {"attention_backward_dropped_sm90_f16",
       samples::plainBackward({.b = 2, .h = 12, .j = 777, .k = 777}, DType::f16,
                              Dropout{.p = 0.1, .stream = 1}),
       {}},
      {"attention_backward_apart_sm90_f16",
       samples::blockBackward({.b = 1, .h = 4, .g = 2, .j = 1024, .k = 1024}, DType::f16,
                              "longformer(block=64,window=1,global=1)"),
       {}},
      {"attention_backward_apart_dropped_sm90_bf16",
       samples::causalBackward({.b = 2, .h = 12, .j = 777, .k = 777, .p = 128, .w = 128},
                               DType::bf16, Dropout{.p = 0.1, .stream = 1}),
       {}},
      {"attention_backward_apart_parts_sm90_f16",
       samples::blockBackward({.b = 1, .h = 2, .g = 4, .j = 1024, .k = 1024}, DType::f16,
                              "longformer(block=64,window=1,global=1)"),
       {}},
      {"attention_backward_packed_sm90_f16",
       samples::packedBackward({.b = 16, .h = 12, .j = 512, .k = 512, .tokens = 8192}, DType::f16,
                               true),
       {}},
      {"attention_backward_single_sm90_bf16",
       samples::causalBackward({.b = 1, .h = 4, .g = 2, .j = 2048, .k = 2048, .p = 256, .w = 256},
                               DType::bf16),
       {}}};
  const Sm90AttentionBackwardKnobs knobs[] = {
      {.tileQueries = 128, .headGroup = 128},
      {.tileQueries = 64, .headGroup = 8},
      {.tileQueries = 128, .headGroup = 24},
      {.gradients = BackwardGradients::apart,
       .tileQueries = 64,
       .tileKeys = 64,
       .headGroup = 4,
       .blocks = 264},
      {.gradients = BackwardGradients::apart,
       .tileQueries = 32,
       .tileKeys = 64,
       .headGroup = 24,
       .blocks = 264},
      {.gradients = BackwardGradients::apart,
       .tileQueries = 64,
       .tileKeys = 64,
       .headGroup = 8,
       .headsOfTile = 1,
       .blocks = 264},
      {.tileQueries = 128, .headGroup = 96},
      {.gradients = BackwardGradients::single, .tileQueries = 64, .headGroup = 4}};
  for (size_t i = 0; i < all.size(); ++i)
    all[i].configuration = examples::rowMajorConfiguration(all[i].kernel, knobs[i]);
  return all;
}

const GoldenRegistration registered("codegen/families/attention_backward_sm90", goldens);

}  // namespace
}  // namespace weft
