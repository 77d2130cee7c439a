// How tiles lie in shared memory: rows of 128 bytes, of which eight neighbours are swizzled over
// 1024 bytes, as TMA brings and takes boxes of 128 bytes and WGMMA reads operands (wgmma.cuh).
#pragma once

namespace weft::sm90 {

constexpr int rowBytes = 128, subtileBytes = 64 * rowBytes;  // a subtile has 64 rows

/// Where chunk `chunk` (of 16 bytes) of a row lies, from the start of a tile at a multiple of 1024.
__device__ __forceinline__ constexpr int swizzled(int row, int chunk) {
  return row * rowBytes + (chunk ^ row % 8) * 16;
}

}  // namespace weft::sm90
