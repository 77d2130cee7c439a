// Values that the compiler knows nothing of: what depends on one is computed where the program says
// so, and neither ahead nor folded into constants.
#pragma once

namespace weft {

/// The same number.
__device__ __forceinline__ float opaque(float value) {
  asm("mov.f32 %0, %1;" : "=f"(value) : "f"(value));
  return value;
}

/// Zero.
__device__ __forceinline__ unsigned opaqueZero() {
  unsigned multiprocessors;
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(multiprocessors));
  return multiprocessors >> 16;  // no machine has as many
}

}  // namespace weft
