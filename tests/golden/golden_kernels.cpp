// golden-kernels [--update]: emits one kernel of each kind and compares its readable text, byte by
// byte, with the file of its name beside this one. A difference is a change of generated code: read
// it, then run with --update. Of loop kernels every piece of text must know the names it reads.
#include "codegen/Emit.h"
#include "codegen/Program.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/loop/Loop.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "kernel/Error.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SampleFloat8.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleStrides.h"
#include "tests/unit/samples/SampleTf32.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft {
namespace {

struct Golden {
  std::string name;
  Kernel kernel;
  Configuration configuration;
};

/// One example at the extents of a BERT-large layer (or tiny odd ones), row-major, the vector along
/// its natural axis.
Golden loopGolden(const std::string &name, DType dtype, LoopKnobs knobs, bool large = true) {
  const examples::Example example = examples::findLoopExample(name, dtype, large ? 1 : 0);
  if (knobs.vectorAxis < 0) knobs.vectorAxis = knobs.laneAxis = example.vectorAxis;
  return {fmt::format("{}_{}", name, nameOf(dtype)), example.kernel,
          examples::rowMajorConfiguration(example.kernel, knobs)};
}

/// [b,h,j,p] read with h inside j, written with j inside h.
Golden transposeGolden() {
  Kernel kernel = samples::identityKernel({{'b', 8}, {'h', 16}, {'j', 512}, {'p', 64}}, "bhjp");
  kernel.name = "transpose";
  Configuration configuration = examples::rowMajorConfiguration(
      kernel, TransposeKnobs{.tile = 64, .vectorWidth = 8, .threads = 256});
  configuration.inputs[0].order = {0, 1, 3, 2};
  return {"transpose_f16", kernel, configuration};
}

Golden contractionGolden() {
  const std::map<char, int64_t> extents{{'b', 8}, {'h', 16}, {'i', 1024}, {'j', 512}, {'p', 64}};
  Kernel kernel = samples::contractKernel(extents, "phi", "bji", "phbj");
  kernel.name = "projection";
  const FmaGemmKnobs knobs{.tileM = 128, .tileN = 128, .tileK = 16, .threadM = 8, .threadN = 8};
  return {"projection_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

/// The same projection on tensor cores, scaled, and with a result whose last columns are no
/// multiple of 16 bytes.
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

/// And on the tensor cores of sm_80.
Golden sm80Golden() {
  const std::map<char, int64_t> extents{{'b', 7}, {'h', 16}, {'i', 1024}, {'j', 511}, {'p', 64}};
  Kernel kernel = samples::contractKernel(extents, "phi", "bji", "phbj");
  kernel.name = "projection";
  kernel.body[0].attributes["scale"] = 0.125;
  return {"projection_sm80_f16", kernel, examples::rowMajorConfiguration(kernel, Sm80GemmKnobs{})};
}

/// Of f32 that is read as tf32: one operand along k, one along n.
Golden sm80Tf32Golden() {
  Kernel kernel = samples::inTf32(
      samples::contractKernel({{'m', 1000}, {'n', 777}, {'k', 512}}, "mk", "kn", "mn"));
  for (Value &value : kernel.values) value.dtype = DType::f32;
  kernel.name = "projection";
  return {"projection_sm80_tf32", kernel,
          examples::rowMajorConfiguration(kernel, Sm80GemmKnobs{.stages = 3})};
}

/// With a bias and GELU, on fragments of the sums.
Golden sm80EpilogueGolden() {
  const Kernel kernel =
      samples::gemmBiasGelu({.b = 8, .j = 512, .i = 1024, .u = 4096}, DType::f16, false);
  return {"gemm_bias_gelu_sm80_f16", kernel,
          examples::rowMajorConfiguration(kernel, Sm80GemmKnobs{})};
}

/// Operands that are transformed on load: probabilities finished by rows, rewritten in place by
/// spare warps; a norm applied by the warps that multiply.
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
Golden sm80PrologueGolden() {
  const Kernel kernel =
      samples::normalizedProjection({.b = 8, .j = 512, .i = 1024, .u = 3072}, DType::bf16);
  return {"normalized_projection_sm80_bf16", kernel,
          examples::rowMajorConfiguration(kernel, Sm80GemmKnobs{})};
}
/// An RMS norm behind a projection, whose sums of squares an epilogue left
/// (product_residual_row_sums has them), on the way into the next.
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
      scatterGolden(),
      loopGolden("rotary_halved", DType::f16, {.vectorWidth = 8, .threads = 256}),
      loopGolden("concat", DType::f32, {.vectorWidth = 4, .threads = 64}, false),
      loopGolden("gather", DType::f16, {.vectorWidth = 8, .threads = 128}),
      transposeGolden(),
      contractionGolden(),
      sm90Golden(false),
      sm90Golden(true),
      sm90SplitKGolden(),
      sm90StreamKGolden(),
      sm90StridesGolden(false),
      sm90StridesGolden(true),
      sm90SingleConsumerGolden(false),
      sm90SingleConsumerGolden(true),
      sm90SingleConsumerFusedGolden(),
      sm90FusedGolden(),
      sm90KeptGolden(),
      sm90ColumnReductionGolden(),
      sm90RowReductionGolden(),
      sm90Float8Golden(),
      sm90Tf32Golden(false),
      sm90Tf32Golden(true),
      sm80Golden(),
      sm80EpilogueGolden(),
      sm80Tf32Golden(),
      sm90PrologueGolden(),
      sm80PrologueGolden(),
      sm90NormGolden(),
  };
}

std::string readFile(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// "line 12: `...` instead of `...`".
std::string firstDifference(const std::string &actual, const std::string &expected) {
  std::istringstream left(actual), right(expected);
  for (int line = 1;; ++line) {
    std::string a, b;
    const bool hasA = bool(std::getline(left, a)), hasB = bool(std::getline(right, b));
    if (!hasA && !hasB) return "line ends differ";
    if (hasA != hasB || a != b) return fmt::format("line {}: `{}` instead of `{}`", line, a, b);
  }
}

void addRaw(const codegen::Block &block, std::vector<std::string> &raw) {
  for (const codegen::Statement &s : block) {
    for (const codegen::Code *code : {&s.type, &s.name, &s.value, &s.pointer, &s.width, &s.stride,
                                      &s.count, &s.condition, &s.threads, &s.scratch})
      if (code->isRaw()) raw.push_back(code->str());
    for (const codegen::Code &term : s.terms)
      if (term.isRaw()) raw.push_back(term.str());
    addRaw(s.body, raw);
  }
}

/// Text of a loop kernel that was put together as a string, so that pruning must guess at its
/// names.
std::vector<std::string> rawTexts(const Golden &golden) {
  const auto *knobs = golden.configuration.knobs.getIf<LoopKnobs>();
  if (!knobs) return {};
  const codegen::Program program = codegen::lowerLoop(golden.kernel, golden.configuration, *knobs);
  std::vector<std::string> raw;
  addRaw(program.body, raw);
  addRaw(program.globals, raw);
  for (const codegen::ConstantLine &line : program.constants)
    for (const auto &[name, value] : line.entries)
      if (value.isRaw()) raw.push_back(value.str());
  return raw;
}

int run(bool update) {
  int differing = 0, raws = 0;
  for (const Golden &golden : goldens()) {
    const std::filesystem::path path =
        std::filesystem::path(WEFT_GOLDEN_FOLDER) / (golden.name + ".cu");
    const std::string text = codegen::emit(golden.kernel, golden.configuration, "sm_90a").readable;
    const std::string expected = readFile(path);
    for (const std::string &raw : rawTexts(golden)) {
      ++raws;
      fmt::print("FAILED {}: '{}' does not know its names\n", golden.name, raw);
    }
    if (text == expected) continue;
    ++differing;
    if (update) std::ofstream(path, std::ios::binary) << text;
    fmt::print("{} {}: {}\n", update ? "updated" : "FAILED", golden.name,
               firstDifference(text, expected));
  }
  if (raws > 0) return 1;
  if (differing == 0) fmt::print("{} kernels as recorded\n", goldens().size());
  return differing == 0 || update ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char **argv) {
  const bool update = argc == 2 && std::string_view(argv[1]) == "--update";
  if (argc > 1 && !update) {
    fmt::print(stderr, "usage: golden-kernels [--update]\n");
    return 2;
  }
  try {
    return weft::run(update);
  } catch (const weft::Error &error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
