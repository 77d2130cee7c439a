// Values that the compiler knows nothing of: what depends on one is computed where the program says
// so, and neither ahead nor folded into constants.
#pragma once

namespace weft {

/// The same number.
__device__ __forceinline__ float opaque(float value) {
  asm("mov.f32 %0, %1;" : "=f"(value) : "f"(value));
  return value;
}

/// The value of a lane. A shuffle, since ptxas sees through an assignment. All lanes of the warp
/// take part.
__device__ __forceinline__ int opaque(int value, int lane) { return __shfl_sync(~0u, value, lane); }

/// Zero.
__device__ __forceinline__ unsigned opaqueZero() {
  unsigned multiprocessors;
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  return multiprocessors >> 16;  // no machine has as many
}

}  // namespace weft
