// The functions of codegen/device/scatter.cuh on the emulator. Included by that header when
// WEFT_EMULATE is defined.
#pragma once

#include "emulate_keywords.h"

#include <bit>

namespace weft::ptx {

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

/// bar.warp.sync: lanes wait for each other as they do where they exchange values.
inline void syncWarp(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  ballot(true, file, line);
}
inline int countBits(unsigned bits) { return std::popcount(bits); }
inline int lowestBit(unsigned bits) { return std::countr_zero(bits); }

}  // namespace weft::ptx
