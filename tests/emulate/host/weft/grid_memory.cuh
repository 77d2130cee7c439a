// The functions of codegen/device/grid_memory.cuh on the emulator, which runs one block after the
// other.
#pragma once

#include "emulate_keywords.h"

namespace weft::ptx {

/// atom.inc
inline unsigned arrive(unsigned *counter, unsigned last) {
  const unsigned before = *counter;
  *counter = before >= last ? 0 : before + 1;
  return before;
}

/// ld.relaxed.gpu.global.v4.f32: a vector access, aligned as the device demands.
inline void loadFromGrid(float (&values)[4], const float *from) {
  struct alignas(16) Access {
    float values[4];
  };
  const Access access = *reinterpret_cast<const Access *>(from);
  for (int n = 0; n < 4; ++n) values[n] = access.values[n];
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
