// Emitted gathers read nothing outside the table: an index that it lacks gives a row of NaN, and is
// reported, the first of them with its value, in whatever order threads run.
#include "codegen/Emit.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ArgumentStatus.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/golden/ExampleKernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

using namespace weft;

namespace {

struct Indexed {
  std::vector<float> rows;  ///< row-major, as many as indices
  std::optional<ReportedElement> reported;
};

/// One gather in several configurations: vectors along columns and along the indices, of which the
/// last is cut, with indices in row-major order and transposed.
class Gathers {
public:
  Gathers() : kernel(examples::findLoopExample("gather", DType::f32, 0).kernel) {
    std::vector<emulate::Source> sources;
    for (const AxisId axis :
         {kernel.values[kernel.inputs[1]].axes[1], kernel.values[kernel.inputs[0]].axes[1]})
      for (const int width : {1, 4})
        for (const bool isTransposed : {false, true}) {
          const LoopKnobs knobs{
              .vectorAxis = axis, .vectorWidth = width, .laneAxis = axis, .threads = 64};
          Configuration configuration = examples::rowMajorConfiguration(kernel, knobs);
          if (isTransposed) configuration.inputs[1].order = {1, 0};
          areTransposed.push_back(isTransposed);
          emitted.push_back(codegen::emit(kernel, configuration, "sm_90a"));
          sources.push_back({emitted.back().text, emitted.back().entry});
        }
    library.emplace("gather_range", sources);
  }

  int64_t tableRows() const { return kernel.axes[kernel.values[kernel.inputs[0]].axes[0]].extent; }
  int64_t columns() const { return kernel.axes[kernel.values[kernel.inputs[0]].axes[1]].extent; }
  /// Of the indices: sequences and positions.
  int64_t extent(size_t dimension) const {
    return kernel.axes[kernel.values[kernel.inputs[1]].axes[dimension]].extent;
  }

  /// The same of every configuration and order, of a table whose elements are numbered.
  Indexed of(const std::vector<int32_t> &indices) const {
    std::optional<Indexed> first;
    std::optional<uint64_t> word;
    for (size_t n = 0; n < emitted.size(); ++n)
      for (const emulate::Schedule schedule :
           {emulate::Schedule::ascending, emulate::Schedule::descending}) {
        INFO("configuration " << n);
        std::vector<float> rows(indices.size() * size_t(columns()));
        const uint64_t own = run(n, schedule, indices, rows);
        if (!first) first = Indexed{rows, reportedElement(own)};
        CHECK(own == word.value_or(own));
        CHECK(std::ranges::equal(rows, first->rows, [](float a, float b) {
          return a == b || (std::isnan(a) && std::isnan(b));
        }));
        word = own;
      }
    return *first;
  }

private:
  uint64_t run(size_t n, emulate::Schedule schedule, const std::vector<int32_t> &indices,
               std::vector<float> &rows) const {
    const emulate::GuardedBuffer table(size_t(tableRows() * columns()) * 4),
        ids(indices.size() * 4), y(rows.size() * 4);
    for (int64_t at = 0; at < tableRows() * columns(); ++at) {
      const auto value = float(at);
      std::memcpy(&table.bytes()[size_t(at) * 4], &value, 4);
    }
    for (int64_t at = 0; at < std::ssize(indices); ++at) {
      const int64_t place = areTransposed[n] ? at % extent(1) * extent(0) + at / extent(1) : at;
      std::memcpy(&ids.bytes()[size_t(place) * 4], &indices[size_t(at)], 4);
    }
    uint64_t word = noElement;
    void *pointers[] = {table.bytes().data(), ids.bytes().data(), y.bytes().data(), &word};
    void *arguments[] = {&pointers[0], &pointers[1], &pointers[2], &pointers[3]};
    REQUIRE(emitted[n].parameters.size() == 4);
    CHECK(emitted[n].parameters[3].kind == ParameterKind::status);
    CHECK(emitted[n].parameters[3].index == 1);
    const codegen::Launch &launch = emitted[n].launch;
    const emulate::Grid grid{
        .blocks = launch.grid, .threads = launch.block, .shared = library->kernel(n).shared};
    CHECK(emulate::run(grid, schedule, [&] { library->kernel(n).call(arguments); }) == "");
    CHECK((table.intact() && ids.intact() && y.intact()));
    std::memcpy(rows.data(), y.bytes().data(), rows.size() * 4);
    return word;
  }

  Kernel kernel;
  std::vector<bool> areTransposed;
  std::vector<codegen::EmittedKernel> emitted;
  std::optional<emulate::HostLibrary> library;
};

}  // namespace

TEST_CASE("an index outside the table gives NaN, reads nothing, and the first is reported") {
  const Gathers gathers;
  const int64_t rows = gathers.tableRows(), columns = gathers.columns(),
                count = gathers.extent(0) * gathers.extent(1);
  std::vector<int32_t> right(size_t(count), 0);
  for (int64_t n = 0; n < count; ++n) right[size_t(n)] = int32_t(n * 7 % rows);
  right[1] = int32_t(rows) - 1;
  REQUIRE(!gathers.of(right).reported);
  for (const int32_t wrong : {-1, int32_t(rows), std::numeric_limits<int32_t>::max(),
                              std::numeric_limits<int32_t>::min()})
    for (const int64_t place : {int64_t(0), int64_t(3), gathers.extent(1), count - 1}) {
      INFO(wrong << " at " << place);
      std::vector<int32_t> indices = right;
      indices.back() = -7;  // the first is named
      indices[size_t(place)] = wrong;
      const Indexed result = gathers.of(indices);
      REQUIRE(result.reported);
      CHECK(result.reported->place == place);
      CHECK(result.reported->value == wrong);
      for (int64_t at = 0; at < count * columns; ++at) {
        const int32_t index = indices[size_t(at / columns)];
        const float actual = result.rows[size_t(at)];
        if (index < 0 || index >= rows) CHECK(std::isnan(actual));
        else CHECK(actual == float(index * columns + at % columns));
      }
    }
}
