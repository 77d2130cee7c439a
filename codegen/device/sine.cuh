// Sine and cosine in one instruction each.
#pragma once

namespace weft::ptx {

/// Of angles in [-pi, pi]: at most 2^-20.5 off (PTX ISA, sin and cos).
__device__ __forceinline__ float sine(float angle) {
  float value;
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(angle));
  return value;
}
__device__ __forceinline__ float cosine(float angle) {
  float value;
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(angle));
  return value;
}

}  // namespace weft::ptx
