// The emulator itself on small hand-written kernels: correct ones pass, and each kind of mistake it
// exists to find is found.
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

using namespace weft::emulate;

namespace {

/// Accumulators of 64 neighbours by a shared-memory tree; `barrier` stands between writing and
/// reading the neighbours' values.
std::string treeSum(const std::string &name, const std::string &barrier) {
  return fmt::format(R"(
extern "C" __global__ void __launch_bounds__(64) {0}(const float* __restrict__ x, float*
    __restrict__ y) {{
  __shared__ float partial[64];
  partial[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  for (int half = 32; half > 0; half /= 2) {{
    {1};
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }}
  if (threadIdx.x == 0) y[blockIdx.x] = partial[0];
}})",
                     name, barrier);
}

/// Each block of a cluster of two adds the sums of both, the first block's first; `last` stands
/// behind the reads.
std::string clusterSum(const std::string &name, const std::string &first, const std::string &last) {
  return fmt::format(R"(
#include "weft/cluster.cuh"
extern "C" __global__ void __cluster_dims__(2) {0}(const float* __restrict__ x, float*
    __restrict__ y) {{
  __shared__ float total;
  if (threadIdx.x == 0) total = x[blockIdx.x];
  {1};
  if (threadIdx.x == 0) y[blockIdx.x] = weft::ptx::loadFromBlock(&total,
      0) + weft::ptx::loadFromBlock(&total, 1);
  {2};
}})",
                     name, first, last);
}

const std::vector<Source> sources = {
    {treeSum("tree_sum", "__syncthreads()"), "tree_sum"},
    {treeSum("racing_sum", ""), "racing_sum"},
    {"extern \"C\" __global__ void early_exit(const float* x, float* y) {\n"
     "  if (threadIdx.x >= 40) return;\n  __syncthreads();\n  y[0] = x[0];\n}",
     "early_exit"},
    {"extern \"C\" __global__ void two_barriers(const float* x, float* y) {\n"
     "  if (threadIdx.x < 32)\n    __syncthreads();\n  else\n    __syncthreads();\n  y[0] = "
     "x[0];\n}",
     "two_barriers"},
    {"extern \"C\" __global__ void reads_beyond(const float* x, float* y) { y[0] = x[4096]; }",
     "reads_beyond"},
    {"extern \"C\" __global__ void writes_before(const float* x, float* y) { y[-1] = x[0]; }",
     "writes_before"},
    {"struct alignas(16) Four { float at[4]; };\n"
     "extern \"C\" __global__ void misaligned(const float* x, float* y) {\n"
     "  y[0] = reinterpret_cast<const Four*>(x + 1 + threadIdx.x)->at[0];\n}",
     "misaligned"},
    {"extern \"C\" __global__ void butterfly(const float* x, float* y) {\n"
     "  float total = x[threadIdx.x];\n"
     "  for (int distance = 16; distance > 0; distance /= 2)\n"
     "    total += weft::emulate::shuffle(~0u, total, (threadIdx.x % 32) ^ distance);\n"
     "  y[threadIdx.x / 32] = total;\n}",
     "butterfly"},
    {"extern \"C\" __global__ void exited_lane(const float* x, float* y) {\n"
     "  if (threadIdx.x == 5) return;\n"
     "  const float other = weft::emulate::shuffle(~0u, x[threadIdx.x], (threadIdx.x + 1) % 32);\n"
     "  if (threadIdx.x < 2 || threadIdx.x == 4) y[threadIdx.x / 4] = other;\n}",
     "exited_lane"},
    {clusterSum("cluster_sum", "weft::ptx::clusterBarrier()", "weft::ptx::clusterBarrier()"),
     "cluster_sum"},
    {clusterSum("early_end", "weft::ptx::clusterBarrier()", ""), "early_end"},
    {clusterSum("racing_blocks", "", "weft::ptx::clusterBarrier()"), "racing_blocks"},
    {clusterSum("one_waits", "if (blockIdx.x == 0) weft::ptx::clusterBarrier()", ""), "one_waits"},
};

struct Outcome {
  std::string error;
  bool intact;
  float y[2];
};

/// Runs kernel `n` on x = 1, 2, ..., 128.
Outcome launch(size_t n, int64_t blocks, int64_t threads, Schedule schedule, int64_t cluster = 1) {
  static const HostLibrary library("emulator", sources);
  const HostKernel &kernel = library.kernel(n);
  GuardedBuffer x(128 * sizeof(float)), y(2 * sizeof(float));
  for (int at = 0; at < 128; ++at) {
    const float value = float(at + 1);
    std::memcpy(&x.bytes()[at * sizeof(float)], &value, sizeof value);
  }
  void *pointers[] = {x.bytes().data(), y.bytes().data()},
       *arguments[] = {&pointers[0], &pointers[1]};
  const Grid grid{.blocks = {blocks, 1, 1},
                  .threads = {threads, 1, 1},
                  .cluster = cluster,
                  .shared = kernel.shared};
  Outcome outcome{.error = run(grid, schedule, [&] { kernel.call(arguments); }),
                  .intact = x.intact() && y.intact(),
                  .y = {}};
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
  CHECK_THAT(launch(4, 1, 32, Schedule::ascending).error,
             Catch::Contains("access outside every buffer"));
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

TEST_CASE("blocks of a cluster read each other's shared memory") {
  for (Schedule schedule : {Schedule::ascending, Schedule::descending}) {
    const Outcome outcome = launch(9, 2, 32, schedule, 2);
    CHECK(outcome.error == "");
    CHECK(outcome.y[0] == 3);
    CHECK(outcome.y[1] == 3);
  }
}

TEST_CASE("the shared memory of a block that ended, or has not begun, is NaN") {
  for (size_t kernel : {10, 11}) {
    const Outcome outcome = launch(kernel, 2, 32, Schedule::ascending, 2);
    CHECK(outcome.error == "");
    CHECK((std::isnan(outcome.y[0]) || std::isnan(outcome.y[1])));
  }
}

TEST_CASE("a block that nobody joins at the cluster's barrier is an error") {
  CHECK_THAT(launch(12, 2, 32, Schedule::ascending, 2).error,
             Catch::Contains("ended while others wait"));
  CHECK_THAT(launch(9, 3, 32, Schedule::ascending, 2).error, Catch::Contains("no whole clusters"));
}
