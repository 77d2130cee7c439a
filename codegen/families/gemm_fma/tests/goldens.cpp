// The GEMM without tensor cores whose emitted text is recorded in ../golden.
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft {
namespace {

Golden contractionGolden() {
  const std::map<char, int64_t> extents{{'b', 8}, {'h', 16}, {'i', 1024}, {'j', 512}, {'p', 64}};
  Kernel kernel = samples::contractKernel(extents, "phi", "bji", "phbj");
  kernel.name = "projection";
  const FmaGemmKnobs knobs{.tileM = 128, .tileN = 128, .tileK = 16, .threadM = 8, .threadN = 8};
  return {"projection_f16", kernel, examples::rowMajorConfiguration(kernel, knobs)};
}

std::vector<Golden> goldens() { return {contractionGolden()}; }

const GoldenRegistration registered("codegen/families/gemm_fma", goldens);

}  // namespace
}  // namespace weft
