// The text of the kernel with a workspace, which is recorded in ../golden.
#include "tests/golden/ExampleKernels.h"
#include "tests/golden/Golden.h"
#include "tests/unit/families/workspace/WorkspaceFamily.h"
#include "tests/unit/samples/SampleKernels.h"

namespace weft {
namespace {

std::vector<Golden> goldens() {
  Kernel kernel = samples::reluKernel({{'b', 8}, {'j', 512}}, "bj");
  kernel.name = "workspace_relu";
  return {{"workspace_relu_f16", kernel,
           examples::rowMajorConfiguration(kernel, test::WorkspaceKnobs{2})}};
}

const GoldenRegistration registered("tests/unit/families/workspace", goldens);

}  // namespace
}  // namespace weft
