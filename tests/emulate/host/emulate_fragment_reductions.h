// The functions of codegen/device/fragment_reductions.cuh on the emulator. Included by that header
// when WEFT_EMULATE is defined.
#pragma once

#include "emulate_keywords.h"

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

/// atom.relaxed.inc
inline unsigned count(unsigned *counter, unsigned last) { return arrive(counter, last); }
/// st.relaxed.gpu.global.u32, .v4.u32 and ld.relaxed.gpu.global.v4.u32: aligned as the device
/// demands.
inline void storeForGrid(unsigned *to, unsigned word) { *to = word; }
struct alignas(16) WordsOfGrid {
  unsigned words[4];
};
inline void storeForGrid(unsigned *to, const unsigned (&words)[4]) {
  *reinterpret_cast<WordsOfGrid *>(to) = {{words[0], words[1], words[2], words[3]}};
}
inline void loadForGrid(unsigned (&words)[4], const unsigned *from) {
  const WordsOfGrid found = *reinterpret_cast<const WordsOfGrid *>(from);
  for (int n = 0; n < 4; ++n) words[n] = found.words[n];
}

}  // namespace weft::ptx
