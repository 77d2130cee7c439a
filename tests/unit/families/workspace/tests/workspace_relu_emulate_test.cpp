// The kernel with a workspace on the host: it works in the memory it is given, whatever lies there,
// and writes nothing beside it.
#include "codegen/Emit.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/unit/families/workspace/WorkspaceFamily.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;

namespace {

const Kernel kernel = samples::reluKernel({{'b', 8}, {'j', 125}}, "bj");

codegen::EmittedKernel emittedIn(int rounds) {
  return codegen::emit(
      kernel, examples::rowMajorConfiguration(kernel, test::WorkspaceKnobs{rounds}), "sm_90a");
}

}  // namespace

TEST_CASE("relu of 1000 elements through a poisoned workspace") {
  for (const int rounds : {1, 2}) {
    const codegen::EmittedKernel emitted = emittedIn(rounds);
    CHECK(emitted.launch.workspaceBytes == 4000 * rounds);
    const emulate::HostLibrary library("workspace_relu",
                                       std::vector<emulate::Source>{{emitted.text, emitted.entry}});
    emulate::checkEmitted(kernel,
                          examples::rowMajorConfiguration(kernel, test::WorkspaceKnobs{rounds}),
                          emitted, library.kernel(0), emitted.launch.grid, emitted.launch.block);
  }
}

TEST_CASE("a launch with fewer bytes than the text works in writes outside its workspace") {
  codegen::EmittedKernel emitted = emittedIn(1);
  emitted.launch.workspaceBytes -= 8;  // as many bytes of poison follow it, to a multiple of 16
  const emulate::HostLibrary library("workspace_relu",
                                     std::vector<emulate::Source>{{emitted.text, emitted.entry}});
  const size_t bytes = size_t(kernel.bytes(kernel.inputs[0]));
  const emulate::GuardedBuffer x(bytes), y(bytes), workspace(size_t(emitted.launch.workspaceBytes));
  std::ranges::fill(x.bytes(), std::byte(0));
  void *pointers[] = {x.bytes().data(), y.bytes().data(), workspace.bytes().data()};
  void *arguments[] = {&pointers[0], &pointers[1], &pointers[2]};
  const emulate::Grid grid{.blocks = emitted.launch.grid,
                           .threads = emitted.launch.block,
                           .shared = library.kernel(0).shared};
  CHECK(emulate::run(grid, emulate::Schedule::ascending,
                     [&] { library.kernel(0).call(arguments); }) == "");
  CHECK_FALSE(workspace.intact());
}
