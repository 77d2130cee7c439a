// The dummy's kernel whose emitted text is recorded in ../golden.
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/families/dummy/DummyFamily.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft {
namespace {

std::vector<Golden> goldens() {
  Kernel kernel = samples::identityKernel({{'b', 8}, {'j', 512}}, "bj");
  kernel.name = "dummy_copy";
  return {
      {"dummy_copy_f16", kernel, examples::rowMajorConfiguration(kernel, test::DummyKnobs{256})}};
}

const GoldenRegistration registered("tests/unit/families/dummy", goldens);

}  // namespace
}  // namespace weft
