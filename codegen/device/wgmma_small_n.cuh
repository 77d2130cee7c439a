// wgmma.mma_async.m64nNk16 for the widths of single-consumer tiles, as wgmma.cuh has them for wide ones: D[64 x N] += A[64 x 16] B[16 x N] in
// fp32, A and B in shared memory behind descriptors (sm90.cuh). outerA: A is contiguous along m rather than along k; B always lies
// along k. The null pointer chooses the type of A and B.
#pragma once

#include "weft/types.cuh"

namespace weft::sm90 {

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(half *, float (&d)[4], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %6, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {"
               "%0, %1, %2, %3"
               "}, %4, %5, accumulates, 1, 1, %7, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(half *, float (&d)[8], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %10, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7"
               "}, %8, %9, accumulates, 1, 1, %11, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(half *, float (&d)[12], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %14, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"
               "}, %12, %13, accumulates, 1, 1, %15, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(half *, float (&d)[16], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %18, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
               "}, %16, %17, accumulates, 1, 1, %19, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(half *, float (&d)[20], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %22, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19"
               "}, %20, %21, accumulates, 1, 1, %23, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(half *, float (&d)[24], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %26, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23"
               "}, %24, %25, accumulates, 1, 1, %27, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(bfloat16 *, float (&d)[4], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %6, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3"
               "}, %4, %5, accumulates, 1, 1, %7, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(bfloat16 *, float (&d)[8], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %10, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7"
               "}, %8, %9, accumulates, 1, 1, %11, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(bfloat16 *, float (&d)[12], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %14, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n24k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"
               "}, %12, %13, accumulates, 1, 1, %15, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(bfloat16 *, float (&d)[16], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %18, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
               "}, %16, %17, accumulates, 1, 1, %19, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(bfloat16 *, float (&d)[20], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %22, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n40k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19"
               "}, %20, %21, accumulates, 1, 1, %23, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

template <bool outerA>
__device__ __forceinline__ void wgmmaSmallN(bfloat16 *, float (&d)[24], unsigned long long a, unsigned long long b,
                                               bool accumulates) {
  asm volatile("{\n\t.reg .pred accumulates;\n\tsetp.ne.b32 accumulates, %26, 0;\n\t"
               "wgmma.mma_async.sync.aligned.m64n48k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23"
               "}, %24, %25, accumulates, 1, 1, %27, 0;\n\t}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
               : "l"(a), "l"(b), "r"(int(accumulates)), "n"(int(outerA)));
}

}  // namespace weft::sm90
