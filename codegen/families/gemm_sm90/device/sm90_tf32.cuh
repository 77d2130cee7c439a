// Products of f32 tensors whose elements the tensor cores of sm_90a read as tf32, for the GEMM skeleton (sm90_gemm.cuh):
// wgmma.mma_async.m64nNk8, D[64 x N] += A[64 x 8] B[8 x N], A and B in shared memory behind descriptors (sm90.cuh), both contiguous
// along k, since there are no others, D in registers of a warpgroup. A k-tile of 128 bytes holds 32 elements of k.
//
// Elements are converted on the way to shared memory: by TMA, whose maps are of tf32, or, to nearest, by the threads that copy.
// Whatever is left of their lower 13 bits the tensor cores cut off, which ir/SPEC.md admits as well.
//
// The skeleton's templates find these functions by the type of their arguments, hence the namespace: kernels of other types do not
// depend on this header.
#pragma once

#include "weft/sm90_tiles.cuh"

namespace weft {

/// An element of an f32 tensor that products read as tf32.
struct tfloat32 {
  float value;
};

namespace ptx {

/// Nearest number of 10 explicit fraction bits, ties away from zero; the lower 13 bits of the word are zero.
__device__ __forceinline__ unsigned roundToTf32(float value) {
  unsigned word;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
  return word;
}

}  // namespace ptx

// An assembler's text is a literal: what differs is put together by the preprocessor.
#define WEFT_TF32_REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WEFT_TF32_REGISTERS_64 \
  WEFT_TF32_REGISTERS_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WEFT_TF32_REGISTERS_96 \
  WEFT_TF32_REGISTERS_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WEFT_TF32_REGISTERS_128 \
  WEFT_TF32_REGISTERS_96 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WEFT_TF32_ACCUMULATORS_8(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define WEFT_TF32_ACCUMULATORS_32(i) WEFT_TF32_ACCUMULATORS_8(i), WEFT_TF32_ACCUMULATORS_8(i + 8), WEFT_TF32_ACCUMULATORS_8(i + 16), WEFT_TF32_ACCUMULATORS_8(i + 24)
// `accumulators` of a thread in products of 64 x `columns`; the operands behind them in the text: A, B, whether to accumulate.
#define WEFT_TF32_WGMMA(columns, accumulators, a_, b_, accumulates_, ...) \
  template <bool outerA, bool outerB> \
  __device__ __forceinline__ void multiply(tfloat32 *, float (&d)[accumulators], unsigned long long a, unsigned long long b, bool accumulates) { \
    static_assert(!outerA && !outerB, "operands of tf32 lie along k"); \
    asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, " accumulates_ ", 0;\n\t" \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k8.f32.tf32.tf32 {" WEFT_TF32_REGISTERS_##accumulators "}, " a_ ", " b_ \
                 ", accumulates, 1, 1;\n\t}" \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(int(accumulates))); \
  }

WEFT_TF32_WGMMA("64", 32, "%32", "%33", "%34", WEFT_TF32_ACCUMULATORS_32(0))
WEFT_TF32_WGMMA("128", 64, "%64", "%65", "%66", WEFT_TF32_ACCUMULATORS_32(0), WEFT_TF32_ACCUMULATORS_32(32))
WEFT_TF32_WGMMA("192", 96, "%96", "%97", "%98", WEFT_TF32_ACCUMULATORS_32(0), WEFT_TF32_ACCUMULATORS_32(32), WEFT_TF32_ACCUMULATORS_32(64))
WEFT_TF32_WGMMA("256", 128, "%128", "%129", "%130", WEFT_TF32_ACCUMULATORS_32(0), WEFT_TF32_ACCUMULATORS_32(32), WEFT_TF32_ACCUMULATORS_32(64),
                  WEFT_TF32_ACCUMULATORS_32(96))

#undef WEFT_TF32_REGISTERS_32
#undef WEFT_TF32_REGISTERS_64
#undef WEFT_TF32_REGISTERS_96
#undef WEFT_TF32_REGISTERS_128
#undef WEFT_TF32_ACCUMULATORS_8
#undef WEFT_TF32_ACCUMULATORS_32
#undef WEFT_TF32_WGMMA

/// Rows [outer0, outer0 + rows) of a k-tile by the threads of a warpgroup, from rows that start anywhere (sm90_load.cuh has it for
/// other types); zeros for what is out of bounds.
template <sm90::Operand operand, int rows, int outerExtent, int kExtent>
__device__ __forceinline__ void copyKTile(unsigned char *to, const tfloat32 *from, int outer0, int k0, int thread) {
  static_assert(operand.isAlongK());
  constexpr int together = 4, passes = rows * 8 / sm90::warpgroup, unrolled = 4;
#pragma unroll 1
  for (int first = 0; first < passes; first += unrolled) {
    float loaded[unrolled][together];
#pragma unroll
    for (int pass = 0; pass < unrolled; ++pass) {
      const int item = (first + pass) * sm90::warpgroup + thread, outer = outer0 + item / 8, k = k0 + item % 8 * together;
      const tfloat32 *elements = from + outer * operand.outer + k;
#pragma unroll
      for (int e = 0; e < together; ++e)
        loaded[pass][e] = outer < outerExtent && k + e < kExtent ? loadOne(&elements[e].value) : 0.0f;
    }
#pragma unroll
    for (int pass = 0; pass < unrolled; ++pass) {
      const int item = (first + pass) * sm90::warpgroup + thread, row = item / 8;
      Packed<unsigned, together> words;
#pragma unroll
      for (int e = 0; e < together; ++e) words.at[e] = ptx::roundToTf32(loaded[pass][e]);
      *reinterpret_cast<Packed<unsigned, together> *>(to + row * sm90::rowBytes + (item % 8 ^ row % 8) * 16) = words;
    }
  }
}

}  // namespace weft
