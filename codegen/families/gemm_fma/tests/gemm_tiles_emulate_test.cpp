// Plain products in tiles that a hand-edited plan may name, beyond those that selection tries: the
// square tiles with one element a thread of the attention plans (bench group seed004), on odd
// extents.
#include "codegen/Emit.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/Error.h"
#include "kernel/reference/StoredElement.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/unit/samples/SampleKernels.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace weft;

namespace {

constexpr int64_t m = 37, n = 21, k = 19;

const Kernel &gemm() {
  static const Kernel kernel =
      samples::contractKernel({{'m', m}, {'n', n}, {'k', k}}, "mk", "nk", "mn");
  return kernel;
}

codegen::EmittedKernel emitted(const FmaGemmKnobs &knobs) {
  return codegen::emit(
      gemm(), {.inputs = {rowMajor(2), rowMajor(2)}, .outputs = {rowMajor(2)}, .knobs = knobs},
      "sm_90a");
}

double left(int64_t row, int64_t depth) { return double((row * 5 + depth * 3) % 17 - 8) / 8; }
double right(int64_t column, int64_t depth) { return double((column * 7 + depth) % 13 - 6) / 4; }

}  // namespace

TEST_CASE("square tiles with one element a thread") {
  std::vector<codegen::EmittedKernel> kernels;
  std::vector<emulate::Source> sources;
  for (const int side : {4, 8, 16, 32}) {
    kernels.push_back(
        emitted({.tileM = side, .tileN = side, .tileK = side, .threadM = 1, .threadN = 1}));
    CHECK(kernels.back().launch.block[0] == side * side);
    sources.push_back({kernels.back().text, kernels.back().entry});
  }
  const emulate::HostLibrary library("gemm_tiles", sources);
  emulate::GuardedBuffer a(m * k * 2), b(n * k * 2);
  for (int64_t depth = 0; depth < k; ++depth) {
    for (int64_t row = 0; row < m; ++row)
      reference::storeElement(DType::f16, &a.bytes()[size_t(row * k + depth) * 2],
                              left(row, depth));
    for (int64_t column = 0; column < n; ++column)
      reference::storeElement(DType::f16, &b.bytes()[size_t(column * k + depth) * 2],
                              right(column, depth));
  }
  for (size_t tile = 0; tile < kernels.size(); ++tile) {
    emulate::GuardedBuffer c(m * n * 2);
    void *pointers[] = {a.bytes().data(), b.bytes().data(), c.bytes().data()};
    void *arguments[] = {&pointers[0], &pointers[1], &pointers[2]};
    const codegen::Launch &launch = kernels[tile].launch;
    const emulate::HostKernel &host = library.kernel(tile);
    for (const emulate::Schedule schedule :
         {emulate::Schedule::ascending, emulate::Schedule::descending}) {
      const emulate::Grid grid{
          .blocks = launch.grid, .threads = launch.block, .shared = host.shared};
      CHECK(emulate::run(grid, schedule, [&] { host.call(arguments); }) == "");
    }
    CHECK((a.intact() && b.intact() && c.intact()));
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        double expected = 0;
        for (int64_t depth = 0; depth < k; ++depth)
          expected += left(row, depth) * right(column, depth);
        const double actual =
            reference::loadElement(DType::f16, &c.bytes()[size_t(row * n + column) * 2]);
        INFO("block of " << launch.block[0] << ", row " << row << ", column " << column);
        CHECK(std::abs(actual - expected) <= 1e-3 * std::abs(expected) + 1e-3);
      }
  }
}

TEST_CASE("tiles that no block covers are rejected with the reason") {
  for (const FmaGemmKnobs &knobs :
       {FmaGemmKnobs{.tileM = 7, .tileN = 8, .tileK = 8, .threadM = 1, .threadN = 1},
        FmaGemmKnobs{.tileM = 64, .tileN = 64, .tileK = 8, .threadM = 1, .threadN = 1},
        FmaGemmKnobs{.tileM = 8, .tileN = 8, .tileK = 8, .threadM = 0, .threadN = 1}}) {
    CHECK_THROWS_AS(emitted(knobs), Error);
    CHECK_THROWS_WITH(emitted(knobs), Catch::Contains("threads"));
  }
}
