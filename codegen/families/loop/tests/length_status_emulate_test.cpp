// Emitted kernels say which length is out of range, and which row of a mask is no prefix: the first
// of them, with its value, in whatever order threads run and however rows are divided among them.
#include "codegen/Emit.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/ArgumentStatus.h"
#include "kernel/reference/StoredElement.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/golden/ExampleKernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <optional>

using namespace weft;

namespace {

/// One kernel in several configurations, on elements of its one input.
class Reports {
public:
  Reports(const std::string &name, std::vector<LoopKnobs> knobs)
      : kernel(examples::findLoopExample(name, DType::f32, 0).kernel) {
    std::vector<emulate::Source> sources;
    for (const LoopKnobs &one : knobs) {
      configurations.push_back(examples::rowMajorConfiguration(kernel, one));
      emitted.push_back(codegen::emit(kernel, configurations.back(), "sm_90a"));
      sources.push_back({emitted.back().text, emitted.back().entry});
    }
    library.emplace("length_status_" + name, sources);
  }

  int64_t extent(size_t dimension) const {
    return kernel.axes[kernel.values[kernel.inputs[0]].axes[dimension]].extent;
  }

  /// The same of every configuration and order; results are those of the elements held in range.
  std::optional<ReportedElement> of(const std::vector<double> &elements,
                                    const std::vector<double> &expected) const {
    std::optional<uint64_t> word;
    for (size_t n = 0; n < emitted.size(); ++n)
      for (const emulate::Schedule schedule :
           {emulate::Schedule::ascending, emulate::Schedule::descending}) {
        const uint64_t own = wordOf(n, schedule, elements, expected);
        CHECK(own == word.value_or(own));
        word = own;
      }
    return reportedElement(*word);
  }

private:
  uint64_t wordOf(size_t n, emulate::Schedule schedule, const std::vector<double> &elements,
                  const std::vector<double> &expected) const {
    const DType type = kernel.values[kernel.inputs[0]].dtype;
    const emulate::GuardedBuffer given(elements.size() * sizeOf(type)), left(expected.size() * 4);
    for (size_t at = 0; at < elements.size(); ++at)
      reference::storeElement(type, &given.bytes()[at * sizeOf(type)], elements[at]);
    uint64_t word = noElement;
    void *pointers[] = {given.bytes().data(), left.bytes().data(), &word};
    void *arguments[] = {&pointers[0], &pointers[1], &pointers[2]};
    REQUIRE(emitted[n].parameters.size() == 3);
    CHECK(emitted[n].parameters[2].kind == ParameterKind::status);
    CHECK(emitted[n].parameters[2].index == 0);
    const codegen::Launch &launch = emitted[n].launch;
    const emulate::Grid grid{
        .blocks = launch.grid, .threads = launch.block, .shared = library->kernel(n).shared};
    CHECK(emulate::run(grid, schedule, [&] { library->kernel(n).call(arguments); }) == "");
    CHECK((given.intact() && left.intact()));
    for (size_t at = 0; at < expected.size(); ++at)
      CHECK(reference::loadElement(DType::i32, &left.bytes()[at * 4]) == expected[at]);
    return word;
  }

  Kernel kernel;
  std::vector<Configuration> configurations;
  std::vector<codegen::EmittedKernel> emitted;
  std::optional<emulate::HostLibrary> library;
};

std::vector<double> sumsOf(const std::vector<double> &lengths, double bound) {
  std::vector<double> sums = {0};
  for (const double length : lengths) sums.push_back(sums.back() + std::clamp(length, 0.0, bound));
  return sums;
}

}  // namespace

TEST_CASE("offsets report the first length that is negative or above the bound") {
  const Reports reports("offsets",
                        {{.reduction = ReductionMapping::sequential, .threads = 64},
                         {.reduction = ReductionMapping::warp, .threads = 64, .threadsPerRow = 2}});
  const auto sequences = size_t(reports.extent(0));
  const examples::Example example = examples::findLoopExample("offsets", DType::f32, 0);
  const auto bound = double(std::get<int64_t>(example.kernel.body[0].attributes.at("bound")));
  REQUIRE(sequences >= 2);
  std::vector<double> lengths(sequences, bound);
  CHECK(!reports.of(lengths, sumsOf(lengths, bound)));
  lengths[0] = 0;
  CHECK(!reports.of(lengths, sumsOf(lengths, bound)));
  for (const double wrong : {-1.0, bound + 1, double(std::numeric_limits<int32_t>::max()),
                             double(std::numeric_limits<int32_t>::min())})
    for (size_t place = 0; place < sequences; ++place) {
      std::vector<double> own = lengths;
      own[place] = wrong;
      own.back() = place + 1 == sequences ? wrong : -7;  // the first is named
      const std::optional<ReportedElement> found = reports.of(own, sumsOf(own, bound));
      INFO(wrong << " at " << place);
      REQUIRE(found);
      CHECK(found->place == int64_t(place));
      CHECK(double(found->value) == wrong);
    }
}

TEST_CASE("lengths of a mask report the first row that has a 1 behind a 0, and the last such 1") {
  const Reports reports("lengths",
                        {{.reduction = ReductionMapping::sequential, .threads = 64},
                         {.reduction = ReductionMapping::warp, .threads = 64, .threadsPerRow = 4}});
  const auto rows = size_t(reports.extent(0)), columns = size_t(reports.extent(1));
  REQUIRE(rows >= 2);
  REQUIRE(columns >= 4);
  std::vector<double> mask(rows * columns, 0), counts(rows, 0);
  for (size_t row = 0; row < rows; ++row) {
    counts[row] = double(row == 0 ? columns : row % columns);
    std::fill_n(mask.begin() + std::ptrdiff_t(row * columns), size_t(counts[row]), 1.0);
  }
  CHECK(!reports.of(mask, counts));
  for (size_t row = 1; row < rows; ++row) {
    std::vector<double> own = mask, ownCounts = counts;
    own[row * columns + columns - 1] = 1, ownCounts[row] += 1;
    if (row + 1 < rows) own.back() = 1, ownCounts.back() += 1;  // the first is named
    const std::optional<ReportedElement> found = reports.of(own, ownCounts);
    INFO("row " << row);
    REQUIRE(found);
    CHECK(found->place == int64_t(row));
    CHECK(found->value == int32_t(columns) - 1);
  }
  // Each row has a 0 behind its first element, and a 1 behind that, in other places.
  std::fill(mask.begin(), mask.end(), 0.0);
  for (size_t row = 0; row < rows; ++row) {
    mask[row * columns] = mask[row * columns + 2 + row % 2] = 1;
    counts[row] = 2;
  }
  const std::optional<ReportedElement> first = reports.of(mask, counts);
  REQUIRE(first);
  CHECK(first->place == 0);
  CHECK(first->value == 2);
}
