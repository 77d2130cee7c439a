// The dummy's kernel compiles for every target, as those of families of weft do.
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/families/dummy/DummyFamily.h"
#include "tests/unit/samples/SampleKernels.h"

using namespace weft;

TEST_CASE("copies of the dummy family") {
  nvrtctest::Batch batch;
  const Kernel kernel = samples::identityKernel({{'b', 8}, {'j', 125}}, "bj");
  for (const char *architecture : nvrtctest::architectures)
    for (const int threads : {128, 256})
      batch.add("copy", kernel,
                toConfiguration(kernel, {rowMajor(2), rowMajor(2)}, test::DummyKnobs{threads}),
                architecture);
  batch.buildAndCheck(8);
}
