// Shared memory of sm_90a by its 32-bit addresses: vectors of floats, and blocks of 8 x 8 that a
// warp stores and loads as tensor cores hold them.
#pragma once

namespace weft::sm90 {

using SharedAddress = unsigned;

/// Of a pointer into shared memory.
__device__ __forceinline__ SharedAddress sharedAddress(const void *pointer) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void loadAccumulators(float (&accumulators)[4], SharedAddress from) {
  asm volatile("ld.shared::cta.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(accumulators[0]), "=f"(accumulators[1]), "=f"(accumulators[2]),
                 "=f"(accumulators[3])
               : "r"(from)
               : "memory");
}

/// Two floats into the block's own shared memory; 8-byte aligned.
__device__ __forceinline__ void storePair(SharedAddress to, float first, float second) {
  asm volatile("st.shared::cta.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(first), "f"(second)
               : "memory");
}

/// Stores four 8 x 8 blocks of 16-bit elements, one a word; lane l names row l % 8 of block l / 8:
/// 16 bytes each.
__device__ __forceinline__ void storeMatrices(SharedAddress row, const unsigned (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}
/// The converse of storeMatrices.
__device__ __forceinline__ void loadMatrices(unsigned (&words)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(row)
               : "memory");
}

}  // namespace weft::sm90
