// Emitted gathers read nothing outside the table: an index that it lacks gives a row of NaN.
#include "codegen/Emit.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/golden/ExampleKernels.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace weft;

TEST_CASE("an index outside the table gives NaN and reads nothing") {
  const examples::Example example = examples::findLoopExample("gather", DType::f32, 0);
  const Kernel &kernel = example.kernel;
  const int64_t rows = kernel.axes[0].extent, columns = kernel.axes[3].extent,
                count = kernel.elements(kernel.inputs[1]);
  std::vector<emulate::Source> sources;
  std::vector<codegen::EmittedKernel> emitted;
  for (const int width : {1, 4}) {
    const LoopKnobs knobs{.vectorAxis = example.vectorAxis,
                          .vectorWidth = width,
                          .laneAxis = example.vectorAxis,
                          .threads = 64};
    emitted.push_back(
        codegen::emit(kernel, examples::rowMajorConfiguration(kernel, knobs), "sm_90a"));
    sources.push_back({emitted.back().text, emitted.back().entry});
  }
  const emulate::HostLibrary library("gather_range", sources);
  std::vector<int32_t> indices(static_cast<size_t>(count), 0);
  indices[0] = -1, indices[1] = static_cast<int32_t>(rows),
  indices[2] = std::numeric_limits<int32_t>::max();
  indices[3] = std::numeric_limits<int32_t>::min(), indices[4] = static_cast<int32_t>(rows) - 1;
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (size_t at = 0; at < values.size(); ++at) values[at] = static_cast<float>(at);
  for (size_t n = 0; n < sources.size(); ++n) {
    emulate::GuardedBuffer table(rows * columns * 4), ids(count * 4), y(count * columns * 4);
    std::memcpy(table.bytes().data(), values.data(), table.bytes().size());
    std::memcpy(ids.bytes().data(), indices.data(), ids.bytes().size());
    void *pointers[] = {table.bytes().data(), ids.bytes().data(), y.bytes().data()};
    void *arguments[] = {&pointers[0], &pointers[1], &pointers[2]};
    const codegen::Launch &launch = emitted[n].launch;
    const emulate::Grid grid{
        .blocks = launch.grid, .threads = launch.block, .shared = library.kernel(n).shared};
    CHECK(emulate::run(grid, emulate::Schedule::ascending,
                       [&] { library.kernel(n).call(arguments); }) == "");
    CHECK((table.intact() && ids.intact() && y.intact()));
    for (int64_t row = 0; row < count; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        float actual = 0;
        std::memcpy(&actual, &y.bytes()[static_cast<size_t>(row * columns + column) * 4], 4);
        INFO("row " << row << ", column " << column);
        if (row < 4) CHECK(std::isnan(actual));
        else
          CHECK(actual ==
                values[static_cast<size_t>(indices[static_cast<size_t>(row)] * columns + column)]);
      }
  }
}
