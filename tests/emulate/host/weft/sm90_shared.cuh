// What the epilogue store of the GEMM template of sm_90a needs of codegen/device/sm90_shared.cuh,
// on the emulator.
#pragma once

#include "emulate_keywords.h"

#include <cstring>

namespace weft::sm90 {

using SharedAddress = unsigned;

inline unsigned char *sharedBytes(SharedAddress address) {
  return static_cast<unsigned char *>(weft::emulate::dynamicShared()) + address;
}

inline void storePair(SharedAddress to, float first, float second) {
  if (to % 8 != 0) __builtin_trap();
  std::memcpy(sharedBytes(to), &first, 4);
  std::memcpy(sharedBytes(to + 4), &second, 4);
}
inline void loadAccumulators(float (&accumulators)[4], SharedAddress from) {
  if (from % 16 != 0) __builtin_trap();
  std::memcpy(accumulators, sharedBytes(from), 16);
}

/// stmatrix.x4 and ldmatrix.x4: lane l names row l % 8 of block l / 8 and holds two elements of row
/// l / 4 of each block.
inline void storeMatrices(SharedAddress row, const unsigned (&words)[4]) {
  const int lane = weft::emulate::currentThread.x % 32;
  for (int block = 0; block < 4; ++block)
    std::memcpy(sharedBytes(__shfl_sync(~0u, row, 8 * block + lane / 4) + lane % 4 * 4),
                &words[block], 4);
}
inline void loadMatrices(unsigned (&words)[4], SharedAddress row) {
  const int lane = weft::emulate::currentThread.x % 32;
  for (int block = 0; block < 4; ++block)
    std::memcpy(&words[block],
                sharedBytes(__shfl_sync(~0u, row, 8 * block + lane / 4) + lane % 4 * 4), 4);
}

}  // namespace weft::sm90
