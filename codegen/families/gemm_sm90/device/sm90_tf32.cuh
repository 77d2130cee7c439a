// Products of f32 tensors whose elements the tensor cores of sm_90a read as tf32, for the GEMM
// kernel template (sm90_gemm.cuh; wgmma_tf32.cuh): operands are contiguous along k, and a k-tile of
// 128 bytes holds 32 elements of k.
//
// Elements are converted on the way to shared memory: by TMA, whose maps are of tf32, or, to
// nearest, by the threads that copy. Whatever is left of their lower 13 bits the tensor cores cut
// off, which ir/SPEC.md admits as well.
//
// The kernel template's functions find these functions by the type of their arguments, hence the
// namespace: kernels of other types do not depend on this header.
#pragma once

#include "weft/sm90_tiles.cuh"

namespace weft {

/// An element of an f32 tensor that products read as tf32.
struct tfloat32 {
  float value;
};

namespace ptx {

/// Nearest number of 10 explicit fraction bits, ties away from zero; the lower 13 bits of the word
/// are zero.
__device__ __forceinline__ unsigned roundToTf32(float value) {
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
  return word;
}

}  // namespace ptx

/// Rows [outer0, outer0 + rows) of a k-tile by the threads of a warpgroup, from rows that start
/// anywhere (sm90_load.cuh has it for other types); zeros for what is out of bounds.
template <sm90::Operand operand, int rows, int outerExtent, int kExtent>
__device__ __forceinline__ void copyKTile(unsigned char *to, const tfloat32 *from, int outer0,
                                          int k0, int thread) {
  static_assert(operand.isAlongK());
  constexpr int together = 4, passes = rows * 8 / sm90::warpgroup, unrolled = 4;
#pragma unroll 1
  for (int first = 0; first < passes; first += unrolled) {
    float loaded[unrolled][together];
#pragma unroll
    for (int pass = 0; pass < unrolled; ++pass) {
      const int item = (first + pass) * sm90::warpgroup + thread, outer = outer0 + item / 8,
                k = k0 + item % 8 * together;
      const tfloat32 *elements = from + outer * operand.outer + k;
#pragma unroll
      for (int e = 0; e < together; ++e)
        loaded[pass][e] =
            outer < outerExtent && k + e < kExtent ? loadOne(&elements[e].value) : 0.0f;
    }
#pragma unroll
    for (int pass = 0; pass < unrolled; ++pass) {
      const int item = (first + pass) * sm90::warpgroup + thread, row = item / 8;
      Packed<unsigned, together> words;
#pragma unroll
      for (int e = 0; e < together; ++e) words.at[e] = ptx::roundToTf32(loaded[pass][e]);
      *reinterpret_cast<Packed<unsigned, together> *>(to + sm90::swizzled(row, item % 8)) = words;
    }
  }
}

}  // namespace weft
