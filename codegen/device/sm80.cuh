// The PTX that GEMM kernels use from sm_80 on, each instruction behind one named function:
// asynchronous copies of a thread (cp.async), blocks of 8 x 8 between shared memory and a warp
// (ldmatrix), and mma.sync.
#pragma once

#include "weft/types.cuh"

namespace weft::sm80 {

/// Bytes, as shared memory counts them.
using SharedAddress = unsigned;

/// Where the dynamic shared memory of the block begins.
__device__ __forceinline__ SharedAddress dynamicShared() {
  extern __shared__ __align__(128) unsigned char memory[];
  return static_cast<SharedAddress>(__cvta_generic_to_shared(memory));
}

/// Starts a copy of 16 bytes from global to shared memory, both aligned to 16: the first `bytes`
/// from memory, the rest zero.
__device__ __forceinline__ void copyAsync(SharedAddress to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}
/// Ends a group of this thread's copies, which may be empty.
__device__ __forceinline__ void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until all but the newest `pending` groups of this thread's copies have landed.
template <int pending>
__device__ __forceinline__ void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Four 8 x 8 blocks of 16-bit elements, one a word; lane l names row l % 8 of block l / 8: 16
/// bytes each. A lane gets elements 2 (l % 4) and the next of row l / 4.
__device__ __forceinline__ void loadMatrices(unsigned (&words)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row)
               : "memory");
}
/// The same of the transposed blocks: element l / 4 of rows 2 (l % 4) and the next.
__device__ __forceinline__ void loadTransposed(unsigned (&words)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row)
               : "memory");
}

/// sums += A B of a warp: A is 16 x 16, B 16 x 8, sums 16 x 8 in fp32. Of A a lane has rows l / 4
/// and + 8, columns 2 (l % 4), + 1 in a[0], a[1], and + 8 in a[2], a[3]; of B column l / 4, rows as
/// those columns; of the sums rows and columns in the order of A.
__device__ __forceinline__ void multiply(half *, float &sum0, float &sum1, float &sum2, float &sum3,
                                         const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};"
      : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply(bfloat16 *, float &sum0, float &sum1, float &sum2,
                                         float &sum3, const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Accesses to shared memory by address: aligned words, and one 16-bit element.
__device__ __forceinline__ void storeShared(SharedAddress to, unsigned word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ __forceinline__ void storeShared(SharedAddress to, const unsigned (&words)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]),
               "r"(words[2]), "r"(words[3])
               : "memory");
}
__device__ __forceinline__ void loadShared(unsigned (&words)[4], SharedAddress from) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ unsigned short loadSharedElement(SharedAddress from) {
  unsigned short bits;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(from) : "memory");
  return bits;
}

/// The upper half of `low` and the lower half of `high` as one word.
__device__ __forceinline__ unsigned joinHalves(unsigned low, unsigned high) {
  return __funnelshift_r(low, high, 16);
}

}  // namespace weft::sm80
