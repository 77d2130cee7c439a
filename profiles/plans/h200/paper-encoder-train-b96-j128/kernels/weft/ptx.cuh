// The PTX instructions and hardware intrinsics that kernels of every family use, each behind one
// named function.
//
// Inline PTX and device-only intrinsics stand in headers that hold nothing else (README.md lists
// them): a test that runs kernels on the host puts headers of the same names before these.
#pragma once

namespace weft::ptx {

/// The float with the value of an IEEE binary16 bit pattern; exact.
__device__ __forceinline__ float halfToFloat(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/// Nearest binary16, ties to even; overflow gives infinity, NaN stays NaN.
__device__ __forceinline__ unsigned short floatToHalf(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// Nearest bfloat16, ties to even; NaN stays NaN.
__device__ __forceinline__ unsigned short floatToBfloat16(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// The float whose bit pattern is given.
__device__ __forceinline__ float floatFromBits(unsigned bits) { return __uint_as_float(bits); }

/// The larger of two; NaN if either is NaN, so that a NaN in a row is never hidden.
__device__ __forceinline__ float maximum(float a, float b) {
  float value;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
__device__ __forceinline__ float minimum(float a, float b) {
  float value;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}

/// a / b, at most 2 ulp off for |b| in [2^-126, 2^126].
__device__ __forceinline__ float divide(float a, float b) {
  float value;
  asm("div.full.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}

/// 1 / x, at most 1 ulp off; zero where that is below 2^-126.
__device__ __forceinline__ float reciprocal(float value) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(value));
  return inverse;
}

/// 2^x, at most 2 ulp off; zero where that is below 2^-126.
__device__ __forceinline__ float exp2(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
  return power;
}

/// 1 / sqrt(x), at most 2 ulp off.
__device__ __forceinline__ float inverseSquareRoot(float value) { return rsqrtf(value); }

/// sin(pi x) and cos(pi x), at most 1 ulp off: no slow path for large arguments.
__device__ __forceinline__ float sinPi(float value) { return sinpif(value); }
__device__ __forceinline__ float cosPi(float value) { return cospif(value); }

/// The value that lane `lane ^ mask` of the warp holds; all 32 lanes must take part.
__device__ __forceinline__ float shuffleXor(float value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}
__device__ __forceinline__ unsigned shuffleXor(unsigned value, int mask) {
  return __shfl_xor_sync(~0u, value, mask);
}

/// Loads of 4, 8 and 16 aligned bytes that stay in program order among themselves, which ptxas does
/// not promise for others: it likes to issue the loads of a row behind all arithmetic that does not
/// need them. Words are in memory order.
__device__ __forceinline__ void loadInOrder(unsigned short &bits, const void *from) {
  asm volatile("ld.relaxed.cta.global.u16 %0, [%1];" : "=h"(bits) : "l"(from) : "memory");
}
__device__ __forceinline__ void loadInOrder(unsigned (&words)[1], const void *from) {
  asm volatile("ld.relaxed.cta.global.u32 %0, [%1];" : "=r"(words[0]) : "l"(from) : "memory");
}
__device__ __forceinline__ void loadInOrder(unsigned (&words)[2], const void *from) {
  asm volatile("ld.relaxed.cta.global.v2.u32 {%0, %1}, [%2];"
               : "=r"(words[0]), "=r"(words[1])
               : "l"(from)
               : "memory");
}
__device__ __forceinline__ void loadInOrder(unsigned (&words)[4], const void *from) {
  asm volatile("ld.relaxed.cta.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from)
               : "memory");
}

/// Waits until every thread of the block has arrived; shared memory written before is visible
/// after.
__device__ __forceinline__ void barrier() { __syncthreads(); }

}  // namespace weft::ptx
