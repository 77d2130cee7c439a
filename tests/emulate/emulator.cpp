// The emulator itself on small hand-written kernels: correct ones pass, and each kind of mistake it exists to find is found.
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstring>

using namespace weft::emulate;

namespace {

/// Sums of 64 neighbours by a shared-memory tree; `barrier` stands between writing and reading the neighbours' values.
std::string treeSum(const std::string &name, const std::string &barrier) {
  return fmt::format(R"(
extern "C" __global__ void __launch_bounds__(64) {0}(const float* __restrict__ x, float* __restrict__ y) {{
  __shared__ float partial[64];
  partial[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  for (int half = 32; half > 0; half /= 2) {{
    {1};
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }}
  if (threadIdx.x == 0) y[blockIdx.x] = partial[0];
}})", name, barrier);
}

const std::vector<Source> sources = {
    {treeSum("tree_sum", "__syncthreads()"), "tree_sum"},
    {treeSum("racing_sum", ""), "racing_sum"},
    {"extern \"C\" __global__ void early_exit(const float* x, float* y) {\n"
     "  if (threadIdx.x >= 40) return;\n  __syncthreads();\n  y[0] = x[0];\n}", "early_exit"},
    {"extern \"C\" __global__ void two_barriers(const float* x, float* y) {\n"
     "  if (threadIdx.x < 32)\n    __syncthreads();\n  else\n    __syncthreads();\n  y[0] = x[0];\n}", "two_barriers"},
    {"extern \"C\" __global__ void reads_beyond(const float* x, float* y) { y[0] = x[4096]; }", "reads_beyond"},
    {"extern \"C\" __global__ void writes_before(const float* x, float* y) { y[-1] = x[0]; }", "writes_before"},
    {"struct alignas(16) Four { float at[4]; };\n"
     "extern \"C\" __global__ void misaligned(const float* x, float* y) {\n"
     "  y[0] = reinterpret_cast<const Four*>(x + 1 + threadIdx.x)->at[0];\n}", "misaligned"},
    {"extern \"C\" __global__ void butterfly(const float* x, float* y) {\n"
     "  float total = x[threadIdx.x];\n"
     "  for (int distance = 16; distance > 0; distance /= 2)\n"
     "    total += weft::emulate::shuffle(~0u, total, (threadIdx.x % 32) ^ distance);\n"
     "  y[threadIdx.x / 32] = total;\n}", "butterfly"},
    {"extern \"C\" __global__ void exited_lane(const float* x, float* y) {\n"
     "  if (threadIdx.x == 5) return;\n"
     "  const float other = weft::emulate::shuffle(~0u, x[threadIdx.x], (threadIdx.x + 1) % 32);\n"
     "  if (threadIdx.x < 2 || threadIdx.x == 4) y[threadIdx.x / 4] = other;\n}", "exited_lane"},
};

struct Outcome {
  std::string error;
  bool intact;
  float y[2];
};

/// Runs kernel `n` on x = 1, 2, ..., 128.
Outcome launch(size_t n, int64_t blocks, int64_t threads, Schedule schedule) {
  static const HostLibrary library("emulator", sources);
  const HostKernel &kernel = library.kernel(n);
  GuardedBuffer x(128 * sizeof(float)), y(2 * sizeof(float));
  for (int at = 0; at < 128; ++at) {
    const float value = float(at + 1);
    std::memcpy(&x.bytes()[at * sizeof(float)], &value, sizeof value);
  }
  void *pointers[] = {x.bytes().data(), y.bytes().data()}, *arguments[] = {&pointers[0], &pointers[1]};
  const Grid grid{.blocks = {blocks, 1, 1}, .threads = {threads, 1, 1}, .shared = kernel.shared};
  Outcome outcome{.error = run(grid, schedule, [&] { kernel.call(arguments); }), .intact = x.intact() && y.intact(), .y = {}};
  std::memcpy(outcome.y, y.bytes().data(), sizeof outcome.y);
  return outcome;
}

}  // namespace

TEST_CASE("a tree sum with its barriers is right in either order") {
  for (Schedule schedule : {Schedule::ascending, Schedule::descending}) {
    const Outcome outcome = launch(0, 2, 64, schedule);
    CHECK(outcome.error == "");
    CHECK(outcome.intact);
    CHECK(outcome.y[0] == 64 * 65 / 2);
    CHECK(outcome.y[1] == 64 * 65 / 2 + 64 * 64);
  }
}

TEST_CASE("without them it is wrong in at least one order") {
  const bool ascending = launch(1, 2, 64, Schedule::ascending).y[0] == 64 * 65 / 2;
  const bool descending = launch(1, 2, 64, Schedule::descending).y[0] == 64 * 65 / 2;
  CHECK_FALSE((ascending && descending));
}

TEST_CASE("divergence is an error that names the places") {
  CHECK_THAT(launch(2, 1, 64, Schedule::ascending).error,
             Catch::Contains("24 of 64 threads finished") && Catch::Contains("40 wait at barrier"));
  CHECK_THAT(launch(3, 1, 64, Schedule::ascending).error, Catch::Contains("diverged barrier"));
}

TEST_CASE("accesses outside an argument are found") {
  CHECK_THAT(launch(4, 1, 32, Schedule::ascending).error, Catch::Contains("access outside every buffer"));
  CHECK_FALSE(launch(5, 1, 32, Schedule::ascending).intact);
}

TEST_CASE("vector accesses must be aligned, as on the device") {
  CHECK_THAT(launch(6, 1, 32, Schedule::ascending).error, Catch::Contains("misaligned"));
}

TEST_CASE("warps exchange values among their own lanes") {
  const Outcome outcome = launch(7, 1, 64, Schedule::descending);
  CHECK(outcome.error == "");
  CHECK(outcome.y[0] == 32 * 33 / 2);
  CHECK(outcome.y[1] == 32 * 33 / 2 + 32 * 32);
}

TEST_CASE("the value of a lane that has exited is NaN") {
  const Outcome outcome = launch(8, 1, 32, Schedule::ascending);
  CHECK(outcome.error == "");
  CHECK(outcome.y[0] == 3);
  CHECK(std::isnan(outcome.y[1]));
}
