// The asynchronous instructions of sm_90a on small hand-written kernels: operands in every layout
// that WGMMA reads, boxes that leave their tensor, and each kind of mistake that they exist to
// find.
#include "kernel/reference/StoredElement.h"
#include "tests/emulate/EmulatedMap.h"
#include "tests/emulate/GuardedBuffer.h"
#include "tests/emulate/HostCompiler.h"
#include "tests/emulate/TranslatePtx.h"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstring>

using namespace weft;
using namespace weft::emulate;

namespace {

constexpr const char *head = R"(
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_tma.cuh"
#include "weft/types.cuh"
#include "weft/wgmma.cuh"
#include "weft/wgmma_f16.cuh"
namespace {
using namespace weft::sm90;
constexpr SharedAddress barrier = 65536;
constexpr weft::half *type = nullptr;
}
)";

/// A[64 x 64] B[64 x 128], operands brought in panels by TMA. numbers: of A, then of B, panels, how
/// many elements wide, their bytes, both offsets of descriptors, and where the four steps of k
/// start; then whether operands lie along m or n, and their swizzle's code.
constexpr const char *product = R"(
template <bool outer>
__device__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b, int step) {
  wgmma<outer, outer>(type, type, d, a, b, step > 0);
}
extern "C" __global__ void product(const __grid_constant__ TensorMap a,
    const __grid_constant__ TensorMap b, const int *numbers, float *y) {
  const unsigned long long code = (unsigned long long)numbers[19] << 62;
  if (threadIdx.x == 0) {
    initializeBarrier(barrier, 1);
    publishBarriers();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arriveExpecting(barrier, (64 + 128) * 64 * 2);
    for (int of = 0; of < 2; ++of)
      for (int panel = 0; panel < numbers[9 * of]; ++panel)
        loadTile(of * 8192 + panel * numbers[9 * of + 2], of ? &b : &a, barrier,
                 panel * numbers[9 * of + 1], 0);
  }
  wait(barrier, 0);
  float d[64];
  fenceWgmma();
  for (int step = 0; step < 4; ++step) {
    unsigned long long descriptors[2];
    for (int of = 0; of < 2; ++of) {
      const int *n = numbers + 9 * of;
      descriptors[of] = (unsigned long long)(of * 8192 + n[5 + step] >> 4) |
          (unsigned long long)(n[3] >> 4) << 16 | (unsigned long long)(n[4] >> 4) << 32 | code;
    }
    if (numbers[18]) multiply<true>(d, descriptors[0], descriptors[1], step);
    else multiply<false>(d, descriptors[0], descriptors[1], step);
  }
  commitWgmma();
  waitForWgmma<0>();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 64; ++i)
    y[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * 128 + i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
}
)";

/// A box of 16 rows at (x, y) into another tensor, or added to it.
constexpr const char *copied = R"(
extern "C" __global__ void copied(const __grid_constant__ TensorMap a,
    const __grid_constant__ TensorMap b, const int *numbers, float *) {
  if (threadIdx.x == 0) {
    initializeBarrier(barrier, 1);
    arriveExpecting(barrier, 128 * 16);
    loadTile(1024, &a, barrier, numbers[0], numbers[1]);
    wait(barrier, 0);
    storeTile(&b, 1024, numbers[2], numbers[3]);
    commitStores();
    waitForStoresToRead<0>();
  }
}
)";

/// Sums of fp32: a run of bytes, and a box, twice each. Then the run again, from memory to memory.
constexpr const char *added = R"(
extern "C" __global__ void added(const __grid_constant__ TensorMap a,
    const __grid_constant__ TensorMap b, const int *, float *y) {
  storePair(1024 + threadIdx.x * 8, threadIdx.x, 0.5f);
  fenceForAsync();
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int twice = 0; twice < 2; ++twice) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::
        "l"(y), "r"(1024), "r"(512) : "memory");
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], "
        "[%1];" :: "l"(&b), "r"(1024), "r"(0), "r"(1) : "memory");
    commitStores();
  }
  waitForStores<0>();
  initializeBarrier(barrier, 1);
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(512)
      : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];" :: "r"(4096), "l"(y), "r"(512), "r"(barrier) : "memory");
  arrive(barrier);
  int done = 0, isElected = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(barrier), "r"(0) : "memory");
  asm volatile("{.reg .pred p; elect.sync _|p, %1; selp.b32 %0, 1, 0, p;}" : "=r"(isElected)
      : "r"(~0u));
  float four[4];
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(four[0]), "=f"(four[1]),
      "=f"(four[2]), "=f"(four[3]) : "r"(4096 + 16) : "memory");
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(4096), "f"(four[2]),
      "f"(isElected ? four[0] : 0) : "memory");
  fenceForAsync();
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(y + 128),
      "r"(4096), "r"(512) : "memory");
  commitStores();
  waitForStores<0>();
}
)";

/// Blocks of 8 x 8 of a warp, stored transposed and loaded both ways.
constexpr const char *matrices = R"(
extern "C" __global__ void matrices(const __grid_constant__ TensorMap a,
    const __grid_constant__ TensorMap b, const int *, float *y) {
  if (threadIdx.x >= 32) return;
  const unsigned lane = threadIdx.x, row = lane % 8 * 16 + lane / 8 * 128;
  unsigned words[4], back[4];
  for (unsigned w = 0; w < 4; ++w) words[w] = (lane * 2 + w * 64) | (lane * 2 + 1 + w * 64) << 16;
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::
      "r"(row), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
  __syncwarp();
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(back[0]), "=r"(back[1]), "=r"(back[2]), "=r"(back[3]) : "r"(row) : "memory");
  unsigned wrong = 0;
  for (int w = 0; w < 4; ++w) wrong += back[w] != words[w];
  // Lane 0 waits for what the others count, in memory that holds 1.0 at first.
  unsigned before, counted = 0x3F800000;
  if (lane > 0) asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
      : "=r"(before) : "l"(y + 40), "r"(1) : "memory");
  while (lane == 0 && counted != 0x3F800000 + 31)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(counted) : "l"(y + 40) : "memory");
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" :: "l"(y + 32), "f"(0.5f), "f"(2.0f)
      : "memory");
  loadMatrices(back, row);
  for (int w = 0; w < 4; ++w)  // element (r, c) of a block is number 8 c + r of its words
    for (int half = 0; half < 2; ++half)
      wrong += (back[w] >> 16 * half & 0xFFFF) != (lane % 4 * 2 + half) * 8 + lane / 4 + w * 64;
  y[lane] = wrong;
}
)";

/// A body that each mistake stands in.
std::string kernelOf(const std::string &body) {
  return fmt::format(R"(
extern "C" __global__ void mistake(const __grid_constant__ TensorMap a,
    const __grid_constant__ TensorMap b, const int *numbers, float *y) {{
  const bool isFirst = threadIdx.x == 0;
  if (isFirst) initializeBarrier(barrier, 1);
  __syncthreads();
  float d[32] = {{}};
  const unsigned long long zeros = describeOperand(0, 0);
  {}
}}
)",
                     body);
}

/// What is done, and what of the error is expected.
const std::pair<const char *, const char *> mistakes[] = {
    {"wait(barrier, 0);",
     "128 wait at mbarrier 0 at byte 65536, phase 0: 1 of 1 arrivals missing, 0 bytes outstanding"},
    {"if (isFirst) arriveExpecting(barrier, 64); wait(barrier, 0);",
     "0 of 1 arrivals missing, 64 bytes outstanding"},
    {"if (isFirst) { arriveExpecting(barrier, 64); arrive(barrier); }",
     "thread 0 arrives once too often at mbarrier 0"},
    {"wait(barrier + 8, 1);", "no mbarrier was initialized at byte 65544"},
    {"if (isFirst) storePair(barrier, 1, 2); __syncthreads(); wait(barrier, 1);",
     "something was written over it"},
    {"if (threadIdx.x < 96) synchronize(3, 128);",
     "96 wait at named barrier 3, phase 0: 96 of 128 threads arrived"},
    {"synchronize(2, threadIdx.x < 32 ? 64 : 128);", "expects"},
    {"if (isFirst) loadTile(0, &a, barrier, 0, 0);", "a bulk load to byte 0 is outstanding"},
    {"if (isFirst) { storeTile(&b, 0, 0, 0); commitStores(); }",
     "ends before its bulk store of byte 0 has read shared memory"},
    {"if (isFirst) { storePair(0, 1, 2); storeTile(&b, 0, 0, 0); commitStores(); "
     "waitForStoresToRead<0>(); }",
     "which thread 0 has stored without fence.proxy.async"},
    {"wgmma<false, false>(type, type, d, zeros, zeros, true);",
     "WGMMA without a fence behind the last wait"},
    {"fenceWgmma(); wgmma<false, false>(type, type, d, zeros, zeros, true); commitWgmma();",
     "ends while WGMMA has its accumulators"},
    {"fenceWgmma(); wgmma<false, false>(type, type, d, zeros, zeros, true); commitWgmma(); d[5] += "
     "1; waitForWgmma<0>();",
     "changed accumulator 5 of 32 while WGMMA was in flight"},
    {"if (threadIdx.x < 96) { fenceWgmma(); wgmma<false, false>(type, type, d, zeros, zeros, true);"
     " commitWgmma(); waitForWgmma<0>(); }",
     "WGMMA 0 of warpgroup 0, which 96 of 128 threads have issued"},
    {"fenceWgmma(); wgmma<false, false>(type, type, d, zeros, threadIdx.x / 32, true); "
     "commitWgmma(); waitForWgmma<0>();",
     "differs from that of other threads of its warpgroup"},
    {"fenceWgmma(); wgmma<false, false>(type, type, d, zeros, describeOperand(90000, 0), true); "
     "commitWgmma(); waitForWgmma<0>();",
     "shared memory of 66560 bytes accessed at byte"},
    {"unsigned found = 0; while (found < 1) asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1];\" : "
     "\"=r\"(found) : \"l\"(numbers) : \"memory\");",
     "waits for memory that nobody writes: ld.acquire.gpu.global.u32"},
    {"asm volatile(\"vote.sync.all.pred p, q, 1;\");",
     "PTX 'vote.sync.all.pred p, q, 1;' is not emulated"},
};

const HostLibrary &library() {
  static const HostLibrary built = [] {
    std::vector<Source> sources = {{std::string(head) + product, "product"},
                                   {std::string(head) + copied, "copied"},
                                   {std::string(head) + added, "added"},
                                   {std::string(head) + matrices, "matrices"}};
    for (const auto &[body, error] : mistakes)
      sources.push_back({head + kernelOf(body), "mistake"});
    return HostLibrary("sm90_async", sources, DeviceHeaders::translated);
  }();
  return built;
}

std::string launch(size_t kernel, Schedule schedule, const EmulatedMap &mapA,
                   const EmulatedMap &mapB, const std::vector<int> &numbers, std::byte *y) {
  EmulatedMap a = mapA, b = mapB;
  const HostKernel &host = library().kernel(kernel);
  const GuardedBuffer dynamic(66560);
  const void *pointer = numbers.data();
  void *arguments[] = {&a, &b, &pointer, &y};
  return run({.threads = {128, 1, 1}, .shared = host.shared, .dynamicShared = dynamic.bytes()},
             schedule, [&] { host.call(arguments); });
}

/// Rows of 16-bit numbers in memory.
struct Matrix {
  int64_t rows, columns;
  GuardedBuffer buffer{size_t(rows * columns * 2)};

  std::byte *at(int64_t row, int64_t column) const {
    return &buffer.bytes()[size_t(row * columns + column) * 2];
  }
  double operator()(int64_t row, int64_t column) const {
    return reference::loadElement(DType::f16, at(row, column));
  }
  void fill(int seed) const {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        reference::storeElement(DType::f16, at(row, column),
                                double((row * 7 + column * 5 + row * column / 3 + seed) % 9 - 4));
  }
  EmulatedMap map(int64_t extentX, int boxX, int boxY, int swizzle) const {
    return {buffer.bytes().data(), TensorMap{.extents = {extentX, rows},
                                             .strides = {columns},
                                             .box = {boxX, boxY},
                                             .swizzleBytes = swizzle}};
  }
};

constexpr Schedule both[] = {Schedule::ascending, Schedule::descending};

}  // namespace

TEST_CASE("WGMMA reads operands of either order in every layout that TMA brings") {
  for (const bool isOuter : {false, true})
    for (const int swizzle : {128, 64, 32, 0})
      for (const Schedule schedule : both) {
        INFO((isOuter ? "along m or n" : "along k") << ", swizzled over " << swizzle << " bytes");
        const int span = swizzle == 0 ? 16 : swizzle, width = span / 2;  // bytes, elements
        // A[m][k] and B[n][k]; or A[k][m] and B[k][n].
        const Matrix a{64, 64}, b = isOuter ? Matrix{64, 128} : Matrix{128, 64};
        a.fill(1), b.fill(5);
        std::vector<int> numbers;
        for (const int outer : {64, 128}) {
          const int rows = isOuter ? 64 : outer, panels = (isOuter ? outer : 64) / width,
                    bytes = rows * span;
          const int leading = swizzle == 0 && isOuter ? 128 : bytes,
                    stride = swizzle == 0 ? (isOuter ? bytes : 128) : 8 * span;
          numbers.insert(numbers.end(), {panels, width, bytes, leading, stride});
          for (int k = 0; k < 64; k += 16)
            numbers.push_back(isOuter        ? k * span
                              : swizzle == 0 ? k / 8 * bytes
                                             : k / width * bytes + k % width * 2);
        }
        numbers.insert(numbers.end(), {isOuter, swizzle == 0     ? 0
                                                : swizzle == 128 ? 1
                                                : swizzle == 64  ? 2
                                                                 : 3});
        std::vector<float> y(64 * 128, std::nanf(""));
        REQUIRE(launch(0, schedule, a.map(64, width, 64, swizzle),
                       b.map(isOuter ? 128 : 64, width, isOuter ? 64 : 128, swizzle), numbers,
                       reinterpret_cast<std::byte *>(y.data())) == "");
        int wrong = 0;
        for (int row = 0; row < 64; ++row)
          for (int column = 0; column < 128; ++column) {
            double sum = 0;
            for (int k = 0; k < 64; ++k)
              sum += isOuter ? a(k, row) * b(k, column) : a(row, k) * b(column, k);
            wrong += y[size_t(row * 128 + column)] == sum ? 0 : 1;
          }
        CHECK(wrong == 0);
      }
}

TEST_CASE("boxes that leave their tensor: zeros come, rows are dropped, columns at 16 bytes") {
  for (const Schedule schedule : both) {
    const Matrix from{12, 72}, to{20, 72};
    from.fill(2);
    REQUIRE(launch(1, schedule, from.map(69, 64, 16, 128), to.map(69, 64, 16, 128), {8, -3, 8, 10},
                   nullptr) == "");
    int wrong = 0;
    for (int64_t row = 0; row < 20; ++row)
      for (int64_t column = 0; column < 72; ++column) {
        const bool isStored = row >= 10 && column >= 8;
        const int64_t source = row - 10 - 3;
        const double expected =
            source >= 0 && source < 12 && column < 69 ? from(source, column) : 0;
        wrong += isStored ? to(row, column) != expected : !std::isnan(to(row, column));
      }
    CHECK(wrong == 0);
    CHECK(to.buffer.intact());
  }
}

TEST_CASE("bulk stores add fp32 to what is there, and runs of bytes come and go") {
  for (const Schedule schedule : both) {
    std::vector<float> y(256, 1);
    const GuardedBuffer box(8 * 32 * sizeof(float));
    std::ranges::fill(box.bytes(), std::byte{0});
    const EmulatedMap map(box.bytes().data(), TensorMap{.dtype = DType::f32,
                                                        .extents = {32, 4},
                                                        .strides = {32},
                                                        .box = {32, 8},
                                                        .swizzleBytes = 128});
    REQUIRE(launch(2, schedule, map, map, {}, reinterpret_cast<std::byte *>(y.data())) == "");
    int wrong = 0;
    const auto sum = [](size_t n) { return 1 + 2 * (n % 2 == 0 ? float(n / 2) : 0.5f); };
    for (size_t n = 0; n < 128; ++n) wrong += y[n] == sum(n) ? 0 : 1;
    for (size_t n = 0; n < 128; ++n)  // two were exchanged on the way
      wrong += y[128 + n] == sum(n == 0 ? 6 : n == 1 ? 4 : n) ? 0 : 1;
    for (size_t row = 0; row < 8; ++row)
      for (size_t column = 0; column < 32; ++column) {
        // Rows of 128 bytes from byte 1024 on, swizzled; the box is one row below the tensor's.
        const size_t from = (row - 1) * 32 + (column / 4 ^ (row - 1)) * 4 + column % 4;
        const float added = from % 2 == 0 ? float(from / 2) : 0.5f;
        float found;
        std::memcpy(&found, &box.bytes()[(row * 32 + column) * sizeof found], sizeof found);
        wrong += found == (row >= 1 && row < 4 ? 2 * added : 0) ? 0 : 1;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("warps store and load transposed blocks; threads of a block count in memory") {
  std::vector<float> y(41, 1);
  const Matrix any{16, 64};
  const EmulatedMap map = any.map(64, 64, 16, 128);
  REQUIRE(launch(3, Schedule::ascending, map, map, {}, reinterpret_cast<std::byte *>(y.data())) ==
          "");
  CHECK(std::vector<float>(y.begin(), y.begin() + 32) == std::vector<float>(32, 0));
  CHECK(y[32] == 1 + 32 * 0.5f);
  CHECK(y[33] == 1 + 32 * 2);
}

TEST_CASE("mistakes of asynchronous programs are errors that name what is wrong") {
  const Matrix a{16, 64}, b{16, 64};
  a.fill(0);
  for (size_t n = 0; n < std::size(mistakes); ++n) {
    INFO(mistakes[n].first);
    std::string errors;
    for (const Schedule schedule : both)
      errors +=
          launch(4 + n, schedule, a.map(64, 64, 16, 128), b.map(64, 64, 16, 128), {0}, nullptr) +
          "\n";
    CHECK_THAT(errors, Catch::Contains(mistakes[n].second));
  }
}

TEST_CASE("statements of PTX become calls on lines of the same numbers") {
  const std::string text = translatePtx(
      "int asm_count;  // no asm here\nasm volatile(\"add %0, %1;\\n\"\n    : \"=r\"(x[1])\n    : "
      "\"r\"(int(weft::two)), \"n\"(3)\n    : \"memory\");\nint y;\nasm(\"\" : \"+f\"(z));\n");
  CHECK_THAT(text, Catch::StartsWith("int asm_count;  // no asm here\n[]()"));
  CHECK_THAT(text, Catch::Contains("ptxOutput(x[1])") &&
                       Catch::Contains("ptxInput(int(weft::two))") &&
                       Catch::Contains("ptxInput(3)") && !Catch::Contains("memory"));
  CHECK_THAT(text, Catch::EndsWith("\n\n\n;\nint y;\nstatic_cast<void>(0);\n"));
  CHECK(std::ranges::count(text, '\n') == 7);
}
