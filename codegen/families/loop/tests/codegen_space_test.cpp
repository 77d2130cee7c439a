// The loop nest: rows, steps, guards and coordinates of loop kernels, and how wide accesses may be.
#include <catch2/catch.hpp>

#include "codegen/Emit.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/LoopSpace.h"
#include "kernel/Error.h"
#include "tests/unit/samples/SampleKernels.h"

using namespace weft;
using codegen::LoopSpace;
using codegen::Names;

namespace {

const std::map<AxisId, int64_t> rowMajorStrides{{0, 5 * 70}, {1, 70}, {2, 1}};

Kernel softmax() { return samples::softmaxKernel({{'b', 3}, {'j', 5}, {'k', 70}}, "bjk"); }

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

std::string emitCopy(Layout input, int width) {
  const Kernel kernel = samples::reluKernel({{'j', 6}, {'k', 64}}, "jk");
  const LoopKnobs knobs{.vectorAxis = 1, .vectorWidth = width, .laneAxis = 1, .threads = 64};
  return codegen::emit(kernel, {{std::move(input)}, {rowMajor(2)}, knobs}, "sm_80").readable;
}

}  // namespace

TEST_CASE("a warp a row walks its row in steps") {
  const Kernel kernel = softmax();
  Names names;
  const LoopKnobs knobs{.vectorAxis = 2,
                        .vectorWidth = 2,
                        .laneAxis = 2,
                        .reduction = ReductionMapping::warp,
                        .threads = 128,
                        .threadsPerRow = 32};
  LoopSpace space(kernel, knobs, {0, 1}, {2}, rowMajorStrides, names);
  CHECK(space.rows == 15);
  CHECK(space.rowVectors == 35);
  CHECK(space.steps == 2);
  CHECK(space.rowsPerBlock == 4);
  CHECK(space.stepGuard() == "at_k < k");  // 35 vectors are no whole number of 32 lanes
  CHECK_FALSE(space.isExact());
  CHECK_FALSE(space.isPartial());
  CHECK(space.launch().grid[0] == 4);
  CHECK(space.launch().block[0] == 128);
}

TEST_CASE("vectors that do not divide their axis are cut") {
  const Kernel kernel = softmax();
  Names names;
  LoopSpace space(kernel,
                  {.vectorAxis = 2,
                   .vectorWidth = 4,
                   .laneAxis = 2,
                   .reduction = ReductionMapping::sequential,
                   .threads = 64},
                  {0, 1}, {2}, rowMajorStrides, names);
  CHECK(space.isPartial());
  CHECK(space.rowVectors == 18);
  CHECK(space.steps == 18);
}

TEST_CASE("a row of cut vectors has the step that its last elements are in") {
  const Kernel kernel = samples::softmaxKernel({{'j', 5}, {'k', 511}}, "jk");
  const LoopKnobs knobs{.vectorAxis = 1,
                        .vectorWidth = 4,
                        .laneAxis = 1,
                        .reduction = ReductionMapping::warp,
                        .threads = 128,
                        .threadsPerRow = 32};
  const std::string text =
      codegen::emit(kernel, {{rowMajor(2)}, {rowMajor(2)}, knobs}, "sm_80").readable;
  CHECK(contains(text, "steps = ((k + width - 1) / width) / threadsPerRow;"));
  CHECK(contains(text, "steps == 4"));
}

TEST_CASE("coordinates of a row are divided out of it once") {
  const Kernel kernel = samples::reluKernel({{'b', 3}, {'j', 5}, {'k', 70}}, "bjk");
  Names names;
  LoopSpace space(kernel, {.vectorAxis = 2, .vectorWidth = 2, .laneAxis = 2, .threads = 128},
                  {0, 1, 2}, {}, rowMajorStrides, names);
  CHECK(space.rows == 3 * 5 * 35);
  CHECK(space.coordinate(2).perElement == 1);
  CHECK(space.coordinate(2).multipleOf == 2);
  CHECK(space.coordinate(1).perElement == 0);
  CHECK(space.range(0, 2) == "point");
  const std::string j = space.range(1, 1);
  CHECK(space.range(1, 1) == j);
  REQUIRE(space.coordinates().size() == 1);  // declared once
  CHECK(space.coordinates()[0].value == "point / (k / width) % j");
}

TEST_CASE("elements of an index") {
  const Kernel kernel = softmax();
  Names names;
  LoopSpace space(kernel, {.vectorAxis = 2, .vectorWidth = 2, .laneAxis = 2, .threads = 128},
                  {0, 1, 2}, {}, rowMajorStrides, names);
  CHECK(space.atElement({.text = "at", .perElement = 1}) == "at + e");
  CHECK(space.atElement({.text = "at", .perElement = 3}) == "at + 3 * e");
  CHECK(space.atElement({.text = "at"}) == "at");
}

TEST_CASE("impossible knobs are rejected by name") {
  const Kernel kernel = softmax();
  Names names;
  CHECK_THROWS_AS(LoopSpace(kernel, {.vectorAxis = 2, .vectorWidth = 3, .laneAxis = 2}, {0, 1}, {2},
                            rowMajorStrides, names),
                  Error);
  CHECK_THROWS_AS(LoopSpace(kernel,
                            {.vectorAxis = 2,
                             .laneAxis = 2,
                             .reduction = ReductionMapping::warp,
                             .threads = 96,
                             .threadsPerRow = 12},
                            {0, 1}, {2}, rowMajorStrides, names),
                  Error);
}

TEST_CASE("accesses are packed only where every address is aligned") {
  CHECK(contains(emitCopy(rowMajor(2), 8), "loadVector<width>(x"));
  Layout unaligned = rowMajor(2);
  unaligned.alignment = 8;
  CHECK(contains(emitCopy(unaligned, 4), "loadVector<width>(x"));
  CHECK(contains(emitCopy(unaligned, 8), "loadStrided<width>(x"));
  const Layout oddRows{.order = {0, 1}, .strides = {65, 1}};
  CHECK(contains(emitCopy(oddRows, 8), "loadStrided<width>(x"));
  const Layout evenRows{.order = {0, 1}, .strides = {192, 1}};
  CHECK(contains(emitCopy(evenRows, 8), "loadVector<width>(x"));
}
