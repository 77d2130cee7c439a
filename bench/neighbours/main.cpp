// weft-neighbour-bench: what instructions of one warpgroup cost the tensor cores that another keeps
// busy, on sm_90a. Ping-pong tiles stand on this: while one consumer multiplies, the other computes
// its epilogue.
//
// In every block one warpgroup multiplies the same slices of shared memory without end (wgmma),
// another issues one instruction in as many independent chains as asked for. Both are timed by the
// multiprocessor's clock, so that its frequency does not matter.
#include "codegen/Emit.h"
#include "kernel/Error.h"
#include "runtime/build/Build.h"
#include "runtime/cuda/Cuda.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>

namespace weft::bench {
namespace {

using namespace runtime;

/// `text`: of one step on x (32 bits) or y (a float); c, d, g, h are operands that do not change,
/// `at` an address in shared memory.
struct Instruction {
  const char *name, *text;
};
constexpr Instruction instructions[] = {
    {"fp32 fma", R"(asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(y) : "f"(g), "f"(h));)"},
    {"fp32 add", R"(asm volatile("add.f32 %0, %0, %1;" : "+f"(y) : "f"(g));)"},
    {"fp32 max", R"(asm volatile("max.f32 %0, %0, %1;" : "+f"(y) : "f"(g));)"},
    {"2 x fp16 fma", R"(asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(c), "r"(d));)"},
    {"logic", R"(asm volatile("lop3.b32 %0, %0, %1, %2, 0x9A;" : "+r"(x) : "r"(c), "r"(d));)"},
    {"permute bytes", R"(asm volatile("prmt.b32 %0, %0, %1, 0x2541;" : "+r"(x) : "r"(c));)"},
    {"compare and select",
     R"(asm volatile("{.reg .pred p; setp.ge.u32 p, %0, 12345; selp.b32 %0, %1, %2, p;}"
         : "+r"(x) : "r"(c), "r"(d));)"},
    {"pack to fp16",
     R"(asm volatile("{.reg .b32 p; cvt.rn.f16x2.f32 p, %0, %1; mov.b32 %0, p;}"
         : "+f"(y) : "f"(g));)"},
    {"32-bit product, low half",
     R"(asm volatile("mad.lo.u32 %0, %0, 0xD2511F53, %1;" : "+r"(x) : "r"(c));)"},
    {"32-bit product, high half", R"(asm volatile("mul.hi.u32 %0, %0, 0xD2511F53;" : "+r"(x));)"},
    {"64-bit product, halves xored",
     R"({ unsigned long long p; asm volatile("mul.wide.u32 %0, %1, 0xD2511F53;" : "=l"(p) : "r"(x));
         x = unsigned(p) ^ unsigned(p >> 32); })"},
    {"exp2", R"(asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(y));)"},
    {"shuffle", R"(asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x));)"},
    {"load 4 bytes (shared)",
     R"(asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at + (x & 12)) : "memory");)"},
    {"store 8 x 8 x 4 (shared)",
     R"(asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %2, %2};"
         :: "r"(at), "r"(x), "r"(c) : "memory");)"},
    {"product, logic in turn",
     R"(if (i % 2) asm volatile("lop3.b32 %0, %0, %1, %2, 0x9A;" : "+r"(x) : "r"(c), "r"(d)); else
         asm volatile("mad.lo.u32 %0, %0, 0xD2511F53, %1;" : "+r"(x) : "r"(c));)"},
    {"fp32 fma, logic in turn",
     R"(if (i % 2) asm volatile("lop3.b32 %0, %0, %1, %2, 0x9A;" : "+r"(x) : "r"(c), "r"(d)); else
         asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(y) : "f"(g), "f"(h));)"},
};

constexpr const char *source = R"(#include "weft/sm90_barrier.cuh"
#include "weft/sm90_tma.cuh"
#include "weft/types.cuh"
#include "weft/wgmma.cuh"
#include "weft/wgmma_f16.cuh"
using namespace weft::sm90;

extern "C" __global__ void __launch_bounds__(384, 1) neighbours(unsigned long long *result,
    int products) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ volatile int isDone;
  for (int i = threadIdx.x; i < 32 * 1024 / 4; i += 384)
      reinterpret_cast<unsigned *>(memory)[i] = 0x3C003C00u + i * 77 % 1023;
  if (threadIdx.x == 0) isDone = 0;
  __syncthreads();
  fenceForAsync();
  const int role = threadIdx.x / 128;
  if (role == 0) return;
  const SharedAddress start = sharedAddress(memory);
  if (role == 1) {
    float sums[2][64] = {};
    const unsigned long long a = describeOperand(start, 8192),
        b = describeOperand(start + 16384, 8192);
    for (int pass = 0; pass < 2; ++pass) {  // the second counts
      const unsigned long long begin = clock64();
      for (int product = 0; product < products; product += 4) {
        fenceWgmma();
#pragma unroll
        for (int step = 0; step < 4; ++step)
#pragma unroll
          for (int block = 0; block < 2; ++block)
            wgmma<false, false>(static_cast<weft::half *>(nullptr),
                                static_cast<weft::half *>(nullptr), sums[block],
                                a + (block * 8192 + step * 32 >> 4), b + (step * 32 >> 4), true);
        commitWgmma();
        waitForWgmma<1>();
      }
      waitForWgmma<0>();
      if (threadIdx.x == 128 && blockIdx.x == 0) result[0] = clock64() - begin;
    }
    float total = 0;
    for (int block = 0; block < 2; ++block)
      for (int e = 0; e < 64; ++e) total += sums[block][e];
    if (total == 1.2345f) result[3] = 1;
    synchronize(5, 128);
    isDone = 1;
    return;
  }
  unsigned word[8];
  float number[8];
  for (int i = 0; i < 8; ++i) word[i] = threadIdx.x * 77 + i, number[i] = threadIdx.x + i;
  const unsigned c = products * 77, d = products + 5;
  const float g = products * 0.1f, h = products;
  const SharedAddress at = start + 32768 + threadIdx.x % 128 * 16;
  unsigned long long steps = 0;
  const unsigned long long begin = clock64();
  while (!isDone) {
#pragma unroll 1
    for (int round = 0; CHAINS > 0 && round < 32; ++round) {
#pragma unroll
      for (int i = 0; i < 128; ++i) {
        unsigned &x = word[i % (CHAINS + !CHAINS)];
        float &y = number[i % (CHAINS + !CHAINS)];
        STEP
      }
      steps += 128;
    }
    if (CHAINS == 0) __nanosleep(2000);
  }
  const unsigned long long cycles = clock64() - begin;
  unsigned total = 0;
  for (int i = 0; i < 8; ++i) total += word[i] + __float_as_uint(number[i]);
  if (total == 12345) result[3] = 2;
  if (threadIdx.x == 256 && blockIdx.x == 0) result[1] = cycles, result[2] = steps;
}
)";

std::string textOf(const char *step, int chains) {
  std::string text = source;
  text.replace(text.find("STEP"), 4, step);
  for (size_t at = text.find("CHAINS"); at != std::string::npos; at = text.find("CHAINS"))
    text.replace(at, 6, std::to_string(chains));
  return text;
}

struct Row {
  double cyclesPerWgmma = 0, stepsPerCycle = 0;
};

Row measure(const std::string &cubin, int multiprocessors, const cuda::Stream &stream) {
  constexpr int64_t sharedBytes = 40 * 1024;
  int products = 20'000;
  const cuda::Module module{cubin};
  cuda::FunctionHandle *function = module.function("neighbours");
  cuda::allowSharedMemory(function, sharedBytes);
  std::array<uint64_t, 4> counts{};
  const cuda::Buffer result(sizeof counts);
  cuda::DevicePointer to = result.address();
  cuda::upload(to, std::as_bytes(std::span(counts)));
  std::array<void *, 2> arguments = {&to, &products};
  cuda::launch(function,
               {.grid = {multiprocessors, 1, 1}, .block = {384, 1, 1}, .sharedBytes = sharedBytes},
               arguments, stream.handle());
  stream.synchronize();
  cuda::download(std::as_writable_bytes(std::span(counts)), to);
  if (counts[0] == 0 || counts[1] == 0)
    throw Error::checkFailed("the kernel of the bench left no counts");
  return {double(counts[0]) / products, double(counts[2]) / double(counts[1])};
}

int run() {
  const cuda::Context context;
  const cuda::Stream stream;
  constexpr int chains[] = {1, 2, 4, 8};
  std::vector<BuildRequest> requests = {{.name = "alone",
                                         .text = textOf("", 0),
                                         .entry = "neighbours",
                                         .architecture = "sm_90a",
                                         .extraFlags = {}}};
  for (const Instruction &one : instructions)
    for (int count : chains)
      requests.push_back({.name = one.name,
                          .text = textOf(one.text, count),
                          .entry = "neighbours",
                          .architecture = "sm_90a",
                          .extraFlags = {}});
  BuildOptions options;
  options.useCache = false;
  options.headers = codegen::deviceHeaders();
  const std::vector<BuildResult> built = build(requests, options);
  for (size_t i = 0; i < built.size(); ++i)
    if (!built[i].error.empty())
      throw Error::checkFailed("{}: {}", requests[i].name, built[i].error);
  const double alone =
      measure(built[0].cubin, context.gpu().multiprocessors, stream).cyclesPerWgmma;
  fmt::print("{}, a product of 64 x 256 x 16 takes {:.1f} cycles alone\n\n", context.gpu().name,
             alone);
  fmt::print(
      "| instruction | chains | a cycle | product slower by | cycles of the tensor cores lost an "
      "instruction |\n|---|---:|---:|---:|---:|\n");
  size_t next = 1;
  for (const Instruction &one : instructions)
    for (int count : chains) {
      const Row row = measure(built[next++].cubin, context.gpu().multiprocessors, stream);
      const double lost = (row.cyclesPerWgmma - alone) / (row.stepsPerCycle * row.cyclesPerWgmma);
      fmt::print("| {} | {} | {:.3f} | {:.1f}% | {:.2f} |\n", one.name, count, row.stepsPerCycle,
                 100 * (row.cyclesPerWgmma / alone - 1), lost);
    }
  return 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argumentCount, char **arguments) {
  if (const std::optional<int> code = weft::runtime::serveAsBuildWorker(argumentCount, arguments))
    return *code;
  CLI::App app(
      "What instructions of one warpgroup cost the tensor cores that another keeps busy (sm_90a).",
      "weft-neighbour-bench");
  CLI11_PARSE(app, argumentCount, arguments);
  try {
    return weft::bench::run();
  } catch (const weft::Error &error) {
    fmt::print(stderr, "weft-neighbour-bench: {}\n", error.what());
    return int(error.kind);
  }
}
