// The functions of codegen/device/grid.cuh on the emulator, which runs one block after the other.
// Included by that header when WEFT_EMULATE is defined.
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

}  // namespace weft::ptx
