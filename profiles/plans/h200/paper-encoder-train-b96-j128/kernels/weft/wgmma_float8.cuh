// wgmma.mma_async.m64nNk32 of 8-bit floats, in both formats and every pair of them: D[64 x N] += A[64 x 32] B[32 x N], A and B in
// shared memory behind descriptors (sm90.cuh), both contiguous along k, since there are no others, D in registers of a warpgroup.
// The null pointers choose the types of A and B.
//
// D has fp32's form but not its precision: 32 products and the sum before them are aligned to the largest of these and cut off below
// 13 bits of its fraction (kernel/reference/PointEvaluator.h says how far off accumulators may be).
#pragma once

#include "weft/float8.cuh"

// An assembler's text is a literal: what differs is put together by the preprocessor.
#define WEFT_REGISTERS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WEFT_REGISTERS_64 \
  WEFT_REGISTERS_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WEFT_REGISTERS_96 \
  WEFT_REGISTERS_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WEFT_REGISTERS_128 \
  WEFT_REGISTERS_96 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WEFT_ACCUMULATORS_8(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define WEFT_ACCUMULATORS_32(i) WEFT_ACCUMULATORS_8(i), WEFT_ACCUMULATORS_8(i + 8), WEFT_ACCUMULATORS_8(i + 16), WEFT_ACCUMULATORS_8(i + 24)
// `accumulators` of a thread in products of 64 x `columns`; the operands behind them in the text: A, B, whether to accumulate.
#define WEFT_WGMMA(A, B, types, columns, accumulators, a_, b_, accumulates_, ...) \
  __device__ __forceinline__ void multiply(A *, B *, float (&d)[accumulators], unsigned long long a, unsigned long long b, bool accumulates) { \
    asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, " accumulates_ ", 0;\n\t" \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k32.f32." types " {" WEFT_REGISTERS_##accumulators "}, " a_ ", " b_ \
                 ", accumulates, 1, 1;\n\t}" \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(int(accumulates))); \
  }
#define WEFT_WGMMAS(A, B, types) \
  WEFT_WGMMA(A, B, types, "64", 32, "%32", "%33", "%34", WEFT_ACCUMULATORS_32(0)) \
  WEFT_WGMMA(A, B, types, "128", 64, "%64", "%65", "%66", WEFT_ACCUMULATORS_32(0), WEFT_ACCUMULATORS_32(32)) \
  WEFT_WGMMA(A, B, types, "192", 96, "%96", "%97", "%98", WEFT_ACCUMULATORS_32(0), WEFT_ACCUMULATORS_32(32), WEFT_ACCUMULATORS_32(64)) \
  WEFT_WGMMA(A, B, types, "256", 128, "%128", "%129", "%130", WEFT_ACCUMULATORS_32(0), WEFT_ACCUMULATORS_32(32), WEFT_ACCUMULATORS_32(64), WEFT_ACCUMULATORS_32(96))

namespace weft::sm90 {

WEFT_WGMMAS(float8e4m3, float8e4m3, "e4m3.e4m3")
WEFT_WGMMAS(float8e4m3, float8e5m2, "e4m3.e5m2")
WEFT_WGMMAS(float8e5m2, float8e4m3, "e5m2.e4m3")
WEFT_WGMMAS(float8e5m2, float8e5m2, "e5m2.e5m2")

}  // namespace weft::sm90

#undef WEFT_REGISTERS_32
#undef WEFT_REGISTERS_64
#undef WEFT_REGISTERS_96
#undef WEFT_REGISTERS_128
#undef WEFT_ACCUMULATORS_8
#undef WEFT_ACCUMULATORS_32
#undef WEFT_WGMMA
#undef WEFT_WGMMAS
