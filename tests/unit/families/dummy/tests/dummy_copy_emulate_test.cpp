// The dummy's kernel on the host: it copies every element and touches nothing else.
#include "codegen/Emit.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/unit/families/dummy/DummyFamily.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>

using namespace weft;

TEST_CASE("a copy of 1000 elements by blocks of 256 threads") {
  const Kernel kernel = samples::identityKernel({{'b', 8}, {'j', 125}}, "bj");
  const codegen::EmittedKernel emitted = codegen::emit(
      kernel, examples::rowMajorConfiguration(kernel, test::DummyKnobs{256}), "sm_90a");
  const emulate::HostLibrary library("dummy_copy",
                                     std::vector<emulate::Source>{{emitted.text, emitted.entry}});
  const size_t bytes = size_t(kernel.bytes(kernel.inputs[0]));
  const emulate::GuardedBuffer x(bytes), y(bytes);
  for (size_t at = 0; at < bytes; ++at)
    x.bytes()[at] = std::byte(at * 7 % 251), y.bytes()[at] = std::byte(255);
  void *pointers[] = {x.bytes().data(), y.bytes().data()};
  void *arguments[] = {&pointers[0], &pointers[1]};
  const emulate::Grid grid{.blocks = emitted.launch.grid,
                           .threads = emitted.launch.block,
                           .shared = library.kernel(0).shared};
  CHECK(emulate::run(grid, emulate::Schedule::ascending,
                     [&] { library.kernel(0).call(arguments); }) == "");
  CHECK(std::ranges::equal(x.bytes(), y.bytes()));
  CHECK((x.intact() && y.intact()));
}
