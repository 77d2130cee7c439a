// The functions of codegen/families/loop/device/cluster.cuh on the emulator.
#pragma once

#include "tests/emulate/host/emulate_keywords.h"

#include "weft/ptx.cuh"

namespace weft::ptx {

inline void clusterBarrier(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  weft::emulate::clusterBarrier(file, line);
}

inline float loadFromBlock(const float *own, int rank) {
  float value;
  weft::emulate::loadFromBlock(own, rank, &value, sizeof value);
  return value;
}

}  // namespace weft::ptx
