// Copies of rows whose pitch allows no access wider than an element, on the host: from padded rows
// and to them, along permuted outer axes, of numbers of elements that cut blocks and that do not.
#include "codegen/families/transpose/RowCopy.h"
#include "codegen/families/transpose/TransposeKnobs.h"
#include "tests/emulate/EmittedRun.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

using namespace weft;

namespace {

struct Subject {
  Kernel kernel;
  Configuration configuration;
  codegen::EmittedKernel emitted = {};
};

Layout paddedRows(std::vector<int> order) { return {.order = std::move(order), .pitchUnit = 64}; }

}  // namespace

TEST_CASE("rows of an odd pitch are copied element by element, several a thread") {
  std::vector<Subject> subjects;
  const Layout dense = rowMajor(3), outer{.order = {1, 0, 2}};
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3})
    // 333 elements cut every block; 4096 = 2 * 16 * 128 fill blocks of 1024 and of 4096.
    for (const auto &[b, j, v] : {std::tuple<int64_t, int64_t, int64_t>{3, 35, 333}, {2, 16, 128}})
      for (const int tile : {32, 64})
        for (const auto &[from, to] : {std::pair{paddedRows({0, 1, 2}), dense},
                                       {dense, paddedRows({1, 0, 2})},
                                       {outer, dense}}) {
          Kernel kernel = samples::identityKernel({{'b', b}, {'j', j}, {'v', v}}, "bjv");
          for (Value &value : kernel.values) value.dtype = type;
          const TransposeKnobs knobs{.tile = tile, .vectorWidth = 1, .threads = 256};
          subjects.push_back({kernel, {.inputs = {from}, .outputs = {to}, .knobs = knobs}});
        }
  std::vector<emulate::Source> sources;
  for (Subject &subject : subjects) {
    subject.emitted = codegen::emit(subject.kernel, subject.configuration, "sm_80");
    sources.push_back({subject.emitted.text, subject.emitted.entry});
    REQUIRE(subject.emitted.readable.find("elements a thread") != std::string::npos);
  }
  const emulate::HostLibrary built("row_copies", sources);
  for (size_t n = 0; n < subjects.size(); ++n) {
    INFO(subjects[n].emitted.readable);
    emulate::checkEmitted(subjects[n].kernel, subjects[n].configuration, subjects[n].emitted,
                          built.kernel(n), subjects[n].emitted.launch.grid,
                          subjects[n].emitted.launch.block);
  }
}

TEST_CASE("blocks of both tiles share their elements among threads") {
  CHECK(codegen::copiedPerThread({.tile = 32, .vectorWidth = 1, .threads = 256}) == 4);
  CHECK(codegen::copiedPerThread({.tile = 64, .vectorWidth = 1, .threads = 256}) == 16);
  CHECK(codegen::copiedPerThread({.tile = 8, .vectorWidth = 1, .threads = 256}) == 1);
}
