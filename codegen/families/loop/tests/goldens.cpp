// Loop kernels whose emitted text is recorded in ../golden: one of each kind.
#include "codegen/families/loop/LoopKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"

namespace weft {
namespace {

/// One example at the extents of a BERT-large layer (or tiny odd ones), row-major, the vector along
/// its natural axis.
Golden loopGolden(const std::string &name, DType dtype, LoopKnobs knobs, bool large = true) {
  const examples::Example example = examples::findLoopExample(name, dtype, large ? 1 : 0);
  if (knobs.vectorAxis < 0) knobs.vectorAxis = knobs.laneAxis = example.vectorAxis;
  return {fmt::format("{}_{}", name, nameOf(dtype)), example.kernel,
          examples::rowMajorConfiguration(example.kernel, knobs)};
}

/// Gradients of gamma and beta whose columns blocks of the grid share.
Golden gridGolden() {
  const examples::Example example = examples::findLoopExample("scale_bias", DType::f16, 1);
  const LoopKnobs knobs{.vectorAxis = example.vectorAxis,
                        .vectorWidth = 8,
                        .laneAxis = example.vectorAxis,
                        .reduction = ReductionMapping::gridColumns,
                        .threads = 256,
                        .threadsPerRow = 16,
                        .blocksPerRow = 32};
  return {"scale_bias_grid_f16", example.kernel,
          examples::rowMajorConfiguration(example.kernel, knobs)};
}

/// Gradients of a norm's weights over packed tokens: batches of steps, each of which asks whether
/// it is a token's.
Golden tokensGridGolden() {
  const examples::Example example =
      examples::findLoopExample("token_norm_gradients", DType::f16, 1);
  const LoopKnobs knobs{.vectorAxis = example.vectorAxis,
                        .vectorWidth = 8,
                        .laneAxis = example.vectorAxis,
                        .reduction = ReductionMapping::gridColumns,
                        .threads = 256,
                        .threadsPerRow = 16,
                        .blocksPerRow = 16};
  return {"token_norm_gradients_grid_f16", example.kernel,
          examples::rowMajorConfiguration(example.kernel, knobs)};
}

Golden scatterGolden() {
  const examples::Example example =
      examples::scatterAdd(DType::f16, {.b = 8, .j = 512, .i = 1024}, 30522);
  const LoopKnobs knobs{.vectorAxis = example.vectorAxis,
                        .vectorWidth = 8,
                        .laneAxis = example.vectorAxis,
                        .reduction = ReductionMapping::warp,
                        .threads = 256,
                        .threadsPerRow = 32};
  return {"scatter_add_f16", example.kernel,
          examples::rowMajorConfiguration(example.kernel, knobs)};
}

std::vector<Golden> goldens() {
  using enum ReductionMapping;
  return {
      loopGolden("bias_dropout_residual_layernorm", DType::f16,
                 {.vectorWidth = 8, .reduction = warp, .threads = 128, .threadsPerRow = 32}),
      loopGolden("scale_mask_softmax_dropout", DType::f16,
                 {.vectorWidth = 8, .reduction = warp, .threads = 128, .threadsPerRow = 32}),
      loopGolden("bias_relu_dropout", DType::f16, {.vectorWidth = 8, .threads = 256}),
      loopGolden("residual_rms_norm", DType::bf16,
                 {.vectorWidth = 8, .reduction = block, .threads = 128, .threadsPerRow = 128}),
      loopGolden("bias_gradient", DType::f16,
                 {.vectorWidth = 2, .reduction = sequential, .threads = 64}),
      loopGolden(
          "dropout_activation_bias", DType::f16,
          {.vectorWidth = 8, .reduction = blockColumns, .threads = 256, .threadsPerRow = 16}),
      loopGolden("scale_bias", DType::f16,
                 {.vectorWidth = 8,
                  .reduction = clusterColumns,
                  .threads = 256,
                  .threadsPerRow = 16,
                  .blocksPerRow = 8}),
      gridGolden(),
      tokensGridGolden(),
      loopGolden("token_bias_gradient", DType::f16,
                 {.vectorWidth = 8, .reduction = warpColumns, .threads = 256, .threadsPerRow = 4}),
      loopGolden("token_row_sums", DType::f16,
                 {.vectorWidth = 8, .reduction = warp, .threads = 128, .threadsPerRow = 8}),
      scatterGolden(),
      loopGolden("rotary_halved", DType::f16, {.vectorWidth = 8, .threads = 256}),
      loopGolden("concat", DType::f32, {.vectorWidth = 4, .threads = 64}, false),
      loopGolden("gather", DType::f16, {.vectorWidth = 8, .threads = 128}),
      loopGolden("offsets", DType::f16, {.reduction = sequential, .threads = 64}),
      loopGolden("lengths", DType::f16,
                 {.vectorWidth = 4, .reduction = warp, .threads = 64, .threadsPerRow = 8}),
      loopGolden("pack", DType::f16, {.vectorWidth = 8, .threads = 128}),
      loopGolden("unpack", DType::f16, {.vectorWidth = 8, .threads = 128}),

  };
}

const GoldenRegistration registered("codegen/families/loop", goldens);

}  // namespace
}  // namespace weft
