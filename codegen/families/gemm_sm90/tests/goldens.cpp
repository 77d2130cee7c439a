// GEMMs on the tensor cores of sm_90a whose emitted text is recorded in ../golden: one of each
// schedule, epilogue, prologue and type of operands.
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleRotary.h"
#include "tests/unit/samples/SampleSoftmaxes.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTf32.h"
#include "tests/unit/samples/SampleTokens.h"

#include <ranges>

namespace weft {
namespace {

/// A projection, scaled, and one with a result whose last columns are no multiple of 16 bytes.
Golden sm90Golden(bool isOdd) {
  const std::map<char, int64_t> extents{
      {'b', isOdd ? 7 : 8}, {'h', 16}, {'i', 1024}, {'j', isOdd ? 511 : 512}, {'p', 64}};
  Kernel kernel = samples::contractKernel(extents, "phi", "bji", "phbj");
  kernel.name = "projection";
  if (!isOdd) kernel.body[0].attributes["scale"] = 0.125;
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  return {isOdd ? "projection_sm90_odd_f16" : "projection_sm90_f16", kernel,
          examples::rowMajorConfiguration(kernel, knobs)};
}

/// The projection behind attention, whose rows (b,j) and k (h,p) have two strides each; and one
/// before it, whose result has.
Golden sm90StridesGolden(bool isOfResult) {
  const std::map<char, int64_t> extents{{'b', 8},   {'h', 16},  {'i', 1024},
                                        {'j', 512}, {'k', 512}, {'p', 64}};
  Kernel kernel = isOfResult ? samples::stridedKernel({"bji", "hpi", "bhjp", ""}, extents)
                             : samples::stridedProjection(extents, DType::bf16);
  if (isOfResult) kernel.name = "projection";
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  return {isOfResult ? "projection_sm90_strided_result_f16"
                     : "projection_bias_residual_sm90_strides_bf16",
          kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// The gradient of a projection's weights: 192 tiles for 132 blocks, which take stream-K runs of
/// their slices.
Golden sm90StreamKGolden() {
  Kernel kernel =
      samples::contractKernel({{'i', 1024}, {'m', 4096}, {'u', 3072}}, "mi", "mu", "iu");
  kernel.name = "d_w";
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::cooperative,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2,
                            .streamK = 1};
  return {"d_w_sm90_stream_k_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// The same of packed tokens, in whole tiles that end with the last token.
Golden sm90SummedTokensGolden() {
  Kernel kernel =
      samples::sumOverTokens({.t = 4096, .i = 1024, .u = 3072, .sequences = 8}, DType::f16);
  kernel.name = "d_w";
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  return {"d_w_sm90_tokens_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// A few rows times a large matrix: four blocks share k of a tile.
Golden sm90SplitKGolden() {
  Kernel kernel = samples::contractKernel({{'m', 8}, {'n', 4096}, {'k', 4096}}, "mk", "nk", "mn");
  kernel.name = "projection";
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 64,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2,
                            .splitK = 4};
  return {"projection_sm90_split_k_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// The same by single-consumer tiles: 32 rows of the matrix a block; in the other golden text two
/// blocks share the k of 64 rows along n.
Golden sm90SingleConsumerGolden(bool isSplit) {
  Kernel kernel = samples::contractKernel({{'m', 8}, {'n', 4096}, {'k', 4096}}, "mk",
                                          isSplit ? "kn" : "nk", "mn");
  kernel.name = "projection";
  if (isSplit) kernel.body[0].attributes["scale"] = 0.125;
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::singleConsumer,
                            .tileM = 8,
                            .tileN = isSplit ? 64 : 32,
                            .stages = isSplit ? 24 : 44,
                            .splitK = isSplit ? 2 : 1};
  return {isSplit ? "projection_sm90_single_consumer_split_k_f16"
                  : "projection_sm90_single_consumer_f16",
          kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// With what follows it in a feed-forward layer.
Golden sm90SingleConsumerFusedGolden() {
  const Kernel kernel =
      samples::gemmBiasGelu({.b = 1, .j = 8, .i = 1024, .u = 4096}, DType::f16, false);
  const Sm90GemmKnobs knobs{
      .schedule = Sm90Schedule::singleConsumer, .tileM = 8, .tileN = 64, .stages = 8, .splitK = 2};
  return {"gemm_bias_gelu_sm90_single_consumer_f16", kernel,
          examples::rowMajorConfiguration(kernel, knobs)};
}

/// What ends an attention layer, in one kernel.
Golden sm90FusedGolden() {
  const Kernel kernel =
      samples::gemmBiasDropoutResidual({.b = 8, .j = 512, .i = 1024, .u = 1024}, DType::bf16);
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  return {"gemm_bias_dropout_residual_sm90_bf16", kernel,
          examples::rowMajorConfiguration(kernel, knobs)};
}

/// What begins a feed-forward layer in training: what GELU reads is a second output.
Golden sm90KeptGolden() {
  const Kernel kernel =
      samples::gemmBiasGelu({.b = 8, .j = 512, .i = 1024, .u = 4096}, DType::f16, true);
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 5,
                            .epilogueStages = 4};
  return {"gemm_bias_gelu_kept_sm90_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// What ends the first half of a feed-forward layer's backward pass, with the gradient of its bias;
/// and what a norm needs of its rows.
Golden sm90ColumnReductionGolden() {
  const Kernel kernel = samples::gemmGeluGradientColumnReduction(
      {.b = 8, .j = 512, .i = 1024, .u = 4096}, DType::f16);
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 5,
                            .epilogueStages = 4};
  return {"gemm_gelu_dx_column_reduction_sm90_f16", kernel,
          examples::rowMajorConfiguration(kernel, knobs)};
}
Golden sm90RowReductionGolden() {
  const Kernel kernel =
      samples::gemmResidualRowReductions({.b = 8, .j = 512, .i = 1024, .u = 1024}, DType::bf16);
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::cooperative,
                            .tileM = 128,
                            .tileN = 256,
                            .stages = 3,
                            .epilogueStages = 4};
  return {"gemm_residual_row_reductions_sm90_bf16", kernel,
          examples::rowMajorConfiguration(kernel, knobs)};
}

/// A stacked projection whose queries and keys are turned, and whose values are not.
Golden sm90RotaryGolden() {
  const Kernel kernel = samples::rotatedProjection(
      {.b = 1, .j = 2048, .g = 48, .p = 128, .i = 4096}, DType::f16, {.end = 40});
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::cooperative,
                            .tileM = 128,
                            .tileN = 256,
                            .stages = 4,
                            .epilogueStages = 2};
  return {"rotated_projection_sm90_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// Scores of a decoder's attention: a mask of coordinates, then a local softmax.
Golden sm90MaskGolden() {
  const Kernel kernel =
      samples::causalLocalSoftmax({.b = 8, .h = 16, .j = 512, .k = 512, .p = 64}, DType::f16);
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  Golden golden{"causal_local_softmax_sm90_f16", kernel,
                examples::rowMajorConfiguration(kernel, knobs)};
  for (Layout &layout : golden.configuration.outputs | std::views::drop(1))
    layout.order = {0, 1, 3, 2};  // neighbouring rows are neighbours
  return golden;
}

/// Operands of 8 bits in two formats, with their scales and a bias.
Golden sm90Float8Golden() {
  const Kernel kernel = samples::scaledFloat8Gemm({.m = 4096, .n = 1024, .k = 2048},
                                                  {DType::f8e4m3, DType::f8e5m2, DType::f16});
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  return {"scaled_gemm_sm90_f8", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// f32 that is read as tf32, with a bias; rows of one operand start anywhere.
Golden sm90Tf32Golden(bool isOdd) {
  const Kernel kernel = isOdd ? samples::tf32Gemm({.b = 3, .m = 1000, .n = 777, .k = 555})
                              : samples::inTf32(samples::gemmBias(
                                    {.b = 8, .j = 512, .i = 1024, .u = 1024}, DType::f32));
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  Golden golden{isOdd ? "gemm_sm90_odd_tf32" : "gemm_bias_sm90_tf32", kernel,
                examples::rowMajorConfiguration(kernel, knobs)};
  if (!isOdd) golden.configuration.inputs[0].order = {1, 0};  // the weights along k
  return golden;
}

/// Operands that are transformed on load: probabilities finished by rows, rewritten in place by
/// spare warps.
Golden sm90PrologueGolden() {
  const Kernel kernel =
      samples::scaledContext({.b = 8, .h = 16, .j = 512, .k = 512, .p = 64}, DType::f16);
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 64,
                            .tileN = 128,
                            .stages = 8,
                            .epilogueStages = 2};
  return {"scaled_context_sm90_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// An RMS norm behind a projection, whose sums of squares an epilogue left
/// (gemm_residual_row_reductions has them), on the way into the next.
Golden sm90NormGolden() {
  const Kernel kernel =
      samples::reducedProjection({.b = 8, .j = 512, .i = 1024, .u = 3072}, DType::bf16, true);
  const Sm90GemmKnobs knobs{.schedule = Sm90Schedule::pingPong,
                            .tileM = 128,
                            .tileN = 128,
                            .stages = 6,
                            .epilogueStages = 2};
  return {"rms_summed_projection_sm90_bf16", kernel,
          examples::rowMajorConfiguration(kernel, knobs)};
}

std::vector<Golden> goldens() {
  return {
      sm90Golden(false),
      sm90Golden(true),
      sm90SplitKGolden(),
      sm90StreamKGolden(),
      sm90SummedTokensGolden(),
      sm90StridesGolden(false),
      sm90StridesGolden(true),
      sm90SingleConsumerGolden(false),
      sm90SingleConsumerGolden(true),
      sm90SingleConsumerFusedGolden(),
      sm90FusedGolden(),
      sm90KeptGolden(),
      sm90ColumnReductionGolden(),
      sm90RowReductionGolden(),
      sm90RotaryGolden(),
      sm90MaskGolden(),
      sm90Float8Golden(),
      sm90Tf32Golden(false),
      sm90Tf32Golden(true),
      sm90PrologueGolden(),
      sm90NormGolden(),
  };
}

const GoldenRegistration registered("codegen/families/gemm_sm90", goldens);

}  // namespace
}  // namespace weft
