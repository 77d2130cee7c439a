// What the epilogue store of the GEMM template of sm_90a needs of codegen/device/sm90_barrier.cuh,
// on the emulator.
//
// All threads of a block are consumers that do the same: so a named barrier, or a wait for what
// TMA brings, is one of the whole block.
#pragma once

#include "emulate_keywords.h"

#include "weft/sm90_shared.cuh"

namespace weft::sm90 {

inline void arrive(SharedAddress) {}
inline void arriveExpecting(SharedAddress, int) {}
inline void wait(SharedAddress, int, const char *file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  weft::emulate::barrier(file, line);
}
inline void arriveAt(int, int) {}
inline void synchronize(int, int, const char *file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  weft::emulate::barrier(file, line);
}

}  // namespace weft::sm90
