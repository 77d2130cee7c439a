// The transpose whose emitted text is recorded in ../golden.
#include "codegen/families/transpose/TransposeKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft {
namespace {

/// [b,h,j,p] read with h inside j, written with j inside h.
Golden transposeGolden() {
  Kernel kernel = samples::identityKernel({{'b', 8}, {'h', 16}, {'j', 512}, {'p', 64}}, "bhjp");
  kernel.name = "transpose";
  Configuration configuration = examples::rowMajorConfiguration(
      kernel, TransposeKnobs{.tile = 64, .vectorWidth = 8, .threads = 256});
  configuration.inputs[0].order = {0, 1, 3, 2};
  return {"transpose_f16", kernel, configuration};
}

std::vector<Golden> goldens() { return {transposeGolden()}; }

const GoldenRegistration registered("codegen/families/transpose", goldens);

}  // namespace
}  // namespace weft
