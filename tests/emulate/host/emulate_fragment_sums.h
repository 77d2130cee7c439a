// The functions of codegen/device/fragment_sums.cuh on the emulator. Included by that header when WEFT_EMULATE is defined.
#pragma once

#include "emulate_keywords.h"

namespace weft::ptx {

/// shfl.sync.idx over all lanes
inline unsigned fromLane(unsigned value, int lane, const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  return weft::emulate::shuffle(~0u, value, unsigned(lane), file, line);
}
/// bar.warp.sync: lanes meet where they exchange something.
inline void warpBarrier(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { fromLane(0, 0, file, line); }

}  // namespace weft::ptx
