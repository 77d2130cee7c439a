// Transposes compile for every target without spills and warnings (design rule 4).
#include "codegen/families/transpose/TransposeKnobs.h"
#include "tests/nvrtc/KernelBatch.h"
#include "tests/unit/samples/SampleKernels.h"

using namespace weft;
using nvrtctest::Batch;

TEST_CASE("transposes") {
  Batch batch;
  batch.addSamples(
      "transpose bhjp",
      samples::identityKernel({{'b', 8}, {'h', 16}, {'j', 512}, {'k', 512}, {'p', 64}}, "bhjp"),
      findDevice("h200"), 16);
  batch.addSamples("transpose odd",
                   samples::identityKernel({{'a', 7}, {'b', 33}, {'c', 129}}, "abc"),
                   findDevice("h200"), 12);
  batch.buildAndCheck(16);
}

TEST_CASE("copies of odd rows, with few elements and with more than an int counts") {
  Batch batch;
  for (const int64_t rows : {33, 1'000'000, 40'000'000})
    for (const int tile : {32, 64}) {
      Layout padded = rowMajor(2);
      padded.pitchUnit = 64;
      for (const std::string_view architecture : nvrtctest::architectures)
        batch.add(fmt::format("{} odd rows", rows),
                  samples::identityKernel({{'a', rows}, {'b', 333}}, "ab"),
                  {.inputs = {padded},
                   .outputs = {rowMajor(2)},
                   .knobs = TransposeKnobs{.tile = tile, .vectorWidth = 1, .threads = 256}},
                  architecture);
    }
  batch.buildAndCheck(6);
}

TEST_CASE("transposes of 8-bit floats") {
  Batch batch;
  for (const DType type : {DType::f8e4m3, DType::f8e5m2}) {
    Kernel transpose = samples::identityKernel({{'a', 7}, {'b', 33}, {'c', 256}}, "abc");
    for (Value &value : transpose.values) value.dtype = type;
    batch.addSamples("transpose", transpose, findDevice("h200"), 8);
  }
  batch.buildAndCheck(10);
}
