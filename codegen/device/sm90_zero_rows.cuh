// Rows in shared memory that a warp zeroes when TMA has brought them, before WGMMA reads them: what
// lies behind a sequence's last key may be anything, and 0 times that no number.
#pragma once

#include "weft/sm90_barrier.cuh"
#include "weft/sm90_shared.cuh"
#include "weft/sm90_swizzle.cuh"
#include "weft/sm90_tma.cuh"

namespace weft::sm90 {

/// 16 bytes.
__device__ __forceinline__ void storeChunk(SharedAddress to, const unsigned (&words)[4]) {
  asm volatile("st.shared::cta.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

/// Zeroes the rows from `first` on of panels of `rows` rows each, by a warp, for WGMMA to read once
/// a lane arrives at a barrier.
template <int panels, int rows>
__device__ __forceinline__ void zeroRows(SharedAddress start, int first) {
  constexpr int chunksOfRow = rowBytes / 16;
  const unsigned zeros[4] = {};
#pragma unroll
  for (int panel = 0; panel < panels; ++panel)
    for (int chunk = first * chunksOfRow + int(threadIdx.x % 32); chunk < rows * chunksOfRow;
         chunk += 32)
      storeChunk(start + panel * rows * rowBytes + chunk * 16, zeros);
  fenceForAsync();
}

/// The same of rows that TMA brings to barrier `came`, by the block's first warp: waits for them
/// and arrives for them at `full`. changed: how often it did so before.
template <int panels, int rows>
__device__ __forceinline__ void zeroLastRows(SharedAddress start, int first, SharedAddress came,
                                             SharedAddress full, unsigned &changed) {
  wait(came, int(changed++ % 2));
  zeroRows<panels, rows>(start, first);
  __syncwarp();
  if (threadIdx.x == 0) arrive(full);
}

}  // namespace weft::sm90
