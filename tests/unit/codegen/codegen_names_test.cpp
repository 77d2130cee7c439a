// Identifiers of emitted text are valid, unique and free of reserved words; canonical kernels
// differ in structure alone.
#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "codegen/Names.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "tests/golden/ExampleKernels.h"
#include "tests/unit/samples/SampleKernels.h"

using namespace weft;
using codegen::Names;

TEST_CASE("names are claimed once") {
  Names names;
  CHECK(names.reserve("x") == "x");
  CHECK(names.reserve("x") == "x_2");
  CHECK(names.reserve("x") == "x_3");
  CHECK(names.reserve("x_2") == "x_2_2");
}

TEST_CASE("names are identifiers") {
  Names names;
  CHECK(names.reserve("h.b-j") == "h_b_j");
  CHECK(names.reserve("24") == "v24");
  CHECK(names.reserve("") == "v");
  CHECK(names.reserve("a__b") == "a_b");  // two underscores belong to the implementation
}

TEST_CASE("words of the language and of CUDA are taken") {
  for (const char *word : {"int", "half", "exp", "threadIdx", "weft", "j0"}) {
    Names names;
    CHECK(names.reserve(word) == std::string(word) + "_2");
  }
}

TEST_CASE("kernels that differ in names emit equal hashed text") {
  const std::map<char, int64_t> extents{{'b', 4}, {'i', 64}};
  Kernel first = samples::softmaxKernel(extents, "bi"), second = first;
  second.name = "another";
  second.axes[0].name = "sentences";
  second.values[0].name = "logits";
  const LoopKnobs knobs{.vectorAxis = 1,
                        .vectorWidth = 8,
                        .laneAxis = 1,
                        .reduction = ReductionMapping::warp,
                        .threads = 64,
                        .threadsPerRow = 8};
  const auto one = codegen::emit(first, {{rowMajor(2)}, {rowMajor(2)}, knobs}, "sm_90a");
  const auto other = codegen::emit(second, {{rowMajor(2)}, {rowMajor(2)}, knobs}, "sm_90a");
  CHECK(one.text == other.text);
  CHECK(one.readable != other.readable);
  CHECK(other.readable.find("sentences") != std::string::npos);
  CHECK(other.text.find("sentences") == std::string::npos);
}
