// CUDA's keywords and built-in names for the host compiler. Apart from emulate_cuda.h, because
// these macros must be seen by emitted text and device headers alone. `__shared__` is defined
// around each kernel by HostCompiler.cpp.
#pragma once

#include "tests/emulate/emulate_cuda.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#define __align__(bytes) alignas(bytes)
#define threadIdx ::weft::emulate::currentThread
#define blockIdx ::weft::emulate::currentBlock
#define blockDim ::weft::emulate::threadsPerBlock
#define gridDim ::weft::emulate::blocksPerGrid
#define __syncthreads() ::weft::emulate::barrier(__FILE__, __LINE__)

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

template <typename T>
T __shfl_sync(unsigned, T value, int lane, const char *file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  return weft::emulate::shuffle(~0u, value, unsigned(lane), file, line);
}
