#include "bench/kernels/Probe.h"

#include "kernel/Error.h"
#include "runtime/build/Build.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace weft::bench {
namespace {

namespace cuda = runtime::cuda;

constexpr const char *source = R"(
typedef unsigned long long Count;

__device__ unsigned hashOf(unsigned seed, Count position) {
  unsigned hash = unsigned(position) * 2654435761u + unsigned(position >> 32) * 40503u + seed *
      2246822519u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  hash = (hash ^ hash >> 13) * 3266489917u;
  return hash ^ hash >> 16;
}

// kind: 0 f32, 1 f16, 2 bf16, 3 i32, 4 i1
extern "C" __global__ void fillInput(void *to, int kind, Count elements, unsigned seed,
    unsigned limit) {
  const Count at = Count(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= elements) return;
  const unsigned hash = hashOf(seed, at);
  const float value = (float(hash >> 24) - 128.0f) / 32.0f;
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  if (kind == 0) ((float *)to)[at] = value;
  if (kind == 1) ((unsigned short *)to)[at] = bits;
  if (kind == 2) ((unsigned short *)to)[at] = __float_as_uint(value) >> 16;
  if (kind == 3) ((int *)to)[at] = hash % limit;
  if (kind == 4) ((unsigned char *)to)[at] = hash & 1;
}

template <typename T> __device__ void countOnes(const T *from, Count elements, Count *total) {
  Count own = 0;
  for (Count at = Count(blockIdx.x) * blockDim.x + threadIdx.x; at < elements;
      at += Count(gridDim.x) * blockDim.x)
    own += from[at] == T(~T(0));
  if (own) atomicAdd(total, own);
}
extern "C" __global__ void countPoison(const void *from, int size, Count elements, Count *total) {
  if (size == 1) countOnes((const unsigned char *)from, elements, total);
  if (size == 2) countOnes((const unsigned short *)from, elements, total);
  if (size == 4) countOnes((const unsigned *)from, elements, total);
}

extern "C" __global__ void pick(const void *from, int size, const Count *positions, unsigned *to,
    int count) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  if (size == 1) to[at] = ((const unsigned char *)from)[positions[at]];
  if (size == 2) to[at] = ((const unsigned short *)from)[positions[at]];
  if (size == 4) to[at] = ((const unsigned *)from)[positions[at]];
}

extern "C" __global__ void __launch_bounds__(128) copy(const uint4 *__restrict__ from,
    uint4 *__restrict__ to) {
  const unsigned at = blockIdx.x * 128u + threadIdx.x;
  to[at] = from[at];
}
)";

int kindOf(DType type) {
  switch (type) {
    case DType::f32: return 0;
    case DType::f16: return 1;
    case DType::bf16: return 2;
    case DType::i32: return 3;
    case DType::i1: return 4;
    default: throw Error::unsupported("the bench has no tensors of {}", nameOf(type));
  }
}

double numberFrom(DType type, uint32_t bits) {
  switch (type) {
    case DType::f32: return std::bit_cast<float>(bits);
    case DType::bf16: return std::bit_cast<float>(bits << 16);
    case DType::i32: return std::bit_cast<int32_t>(bits);
    case DType::f16: {
      const int exponent = bits >> 10 & 31, fraction = bits & 0x3FF;
      const double sign = bits & 0x8000 ? -1 : 1;
      if (exponent == 31) return fraction ? NAN : sign * INFINITY;
      return sign *
             (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
    }
    default: return bits;
  }
}

void launchOver(cuda::FunctionHandle *function, int64_t threads, std::vector<void *> arguments,
                cuda::StreamHandle *stream) {
  cuda::launch(function, {.grid = {(threads + 255) / 256, 1, 1}, .block = {256, 1, 1}}, arguments,
               stream);
}

}  // namespace

Probe::Probe(const cuda::Stream &stream) : stream(stream) {
  runtime::BuildOptions options;
  options.useCache = false;
  const std::vector<runtime::BuildResult> built = runtime::build({{.name = "probe",
                                                                   .text = source,
                                                                   .entry = "copy",
                                                                   .architecture = "sm_90a",
                                                                   .extraFlags = {}}},
                                                                 options);
  if (!built[0].error.empty())
    throw Error::checkFailed("the bench's own kernels: {}", built[0].error);
  module = std::make_unique<cuda::Module>(built[0].cubin);
}

void Probe::fillInput(cuda::DevicePointer to, DType type, int64_t elements, uint32_t seed,
                      int64_t limit) const {
  int kind = kindOf(type);
  auto most = static_cast<uint32_t>(limit);
  launchOver(kernel("fillInput"), elements, {&to, &kind, &elements, &seed, &most}, stream.handle());
  stream.synchronize();
}

int64_t Probe::countPoison(cuda::DevicePointer from, DType type, int64_t elements) const {
  const cuda::Buffer total(sizeof(uint64_t));
  cuda::fill(total.address(), 0, total.bytes());
  cuda::DevicePointer to = total.address();
  int size = static_cast<int>(sizeOf(type));
  launchOver(kernel("countPoison"), std::min<int64_t>(elements, 1 << 20),
             {&from, &size, &elements, &to}, stream.handle());
  stream.synchronize();
  int64_t count = 0;
  cuda::download(std::as_writable_bytes(std::span(&count, 1)), total.address());
  return count;
}

std::vector<double> Probe::elementsAt(cuda::DevicePointer from, DType type,
                                      const std::vector<int64_t> &positions) const {
  const auto count = static_cast<int64_t>(positions.size());
  const cuda::Buffer where(count * 8), picked(count * 4);
  cuda::upload(where.address(), std::as_bytes(std::span(positions)));
  cuda::DevicePointer at = where.address(), to = picked.address();
  int size = static_cast<int>(sizeOf(type)), length = static_cast<int>(count);
  launchOver(kernel("pick"), count, {&from, &size, &at, &to, &length}, stream.handle());
  stream.synchronize();
  std::vector<uint32_t> bits(positions.size());
  cuda::download(std::as_writable_bytes(std::span(bits)), picked.address());
  std::vector<double> numbers;
  for (uint32_t one : bits) numbers.push_back(numberFrom(type, one));
  return numbers;
}

void Probe::copy(cuda::DevicePointer from, cuda::DevicePointer to, int64_t bytes,
                 cuda::StreamHandle *on) const {
  void *arguments[] = {&from, &to};
  cuda::launch(kernel("copy"), {.grid = {bytes / 2048, 1, 1}, .block = {128, 1, 1}}, arguments, on);
}

}  // namespace weft::bench
