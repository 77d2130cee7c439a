// The functions of codegen/device/warp.cuh on the emulator.
#pragma once

#include "emulate_keywords.h"

#include <bit>

namespace weft::ptx {

/// shfl.sync.idx over all lanes
inline unsigned fromLane(unsigned value, int lane, const char *file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  return weft::emulate::shuffle(~0u, value, unsigned(lane), file, line);
}
/// bar.warp.sync: lanes meet where they exchange something.
inline void warpBarrier(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  fromLane(0, 0, file, line);
}

/// vote.sync.ballot over all lanes
inline unsigned ballot(bool condition, const char *file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  const unsigned char own = condition;
  unsigned char all[32];
  weft::emulate::exchange(~0u, &own, sizeof own, all, file, line);
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= unsigned(all[lane] == 1) << lane;
  return bits;
}

inline int countBits(unsigned bits) { return std::popcount(bits); }
inline int lowestBit(unsigned bits) { return std::countr_zero(bits); }

}  // namespace weft::ptx
