// GEMMs on the tensor cores of sm_80 whose emitted text is recorded in ../golden.
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleContractions.h"
#include "tests/unit/samples/SamplePrologues.h"
#include "tests/unit/samples/SampleTf32.h"

namespace weft {
namespace {

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

/// A mask along one of two axes that rows run along, and lengths of the other.
Golden sm80MaskGolden() {
  const Kernel kernel =
      samples::gemmWindowPadding({.b = 8, .j = 512, .i = 1024, .u = 4096}, DType::f16);
  return {"gemm_window_padding_sm80_f16", kernel,
          examples::rowMajorConfiguration(kernel, Sm80GemmKnobs{})};
}

/// An operand that is transformed on load: a norm applied by the warps that multiply.
Golden sm80PrologueGolden() {
  const Kernel kernel =
      samples::normalizedProjection({.b = 8, .j = 512, .i = 1024, .u = 3072}, DType::bf16);
  return {"normalized_projection_sm80_bf16", kernel,
          examples::rowMajorConfiguration(kernel, Sm80GemmKnobs{})};
}

std::vector<Golden> goldens() {
  return {sm80Golden(), sm80EpilogueGolden(), sm80MaskGolden(), sm80Tf32Golden(),
          sm80PrologueGolden()};
}

const GoldenRegistration registered("codegen/families/gemm_sm80", goldens);

}  // namespace
}  // namespace weft
