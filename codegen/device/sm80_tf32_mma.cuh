// The PTX of contractions that read f32 as tf32 from sm_80 on (sm80_tf32.cuh), each instruction
// behind one named function: the conversion, mma.sync, and copies and loads of 4 bytes.
#pragma once

#include "weft/sm80.cuh"

namespace weft::sm80 {

/// The bits of a float, rounded to 10 explicit fraction bits, ties away from zero.
__device__ __forceinline__ unsigned roundToTf32(unsigned bits) {
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(ptx::floatFromBits(bits)));
  return word;
}

/// accumulators += A B of a warp: A is 16 x 8, B 8 x 8, accumulators 16 x 8 in fp32. Of A a lane
/// has rows l / 4 and + 8 of column l % 4 in a[0], a[1], and of column + 4 in a[2], a[3]; of B
/// column l / 4, rows as those columns; accumulators lie as those of 16-bit products.
__device__ __forceinline__ void multiplyTf32(float &sum0, float &sum1, float &sum2, float &sum3,
                                             const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};"
      : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// copyAsync of 4 bytes, or, with bytes 0, of a zero.
__device__ __forceinline__ void copyWordAsync(SharedAddress to, const void *from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ unsigned loadSharedWord(SharedAddress from) {
  unsigned word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

}  // namespace weft::sm80
