// What translated device headers of sm_90a (TranslatePtx.h) use beside emulate_keywords.h.
#pragma once

#include "tests/emulate/host/emulate_keywords.h"
#include "tests/emulate/sm90/PtxStatement.h"

#include <bit>

inline size_t __cvta_generic_to_shared(const void *pointer) {
  return size_t(static_cast<const char *>(pointer) -
                static_cast<const char *>(weft::emulate::dynamicShared()));
}
inline int __clz(int bits) { return std::countl_zero(unsigned(bits)); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}
inline void __nanosleep(unsigned) {}
/// Lanes meet where they exchange something.
inline void __syncwarp(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  weft::emulate::shuffle(~0u, 0, 0, file, line);
}
inline unsigned __ballot_sync(unsigned mask, bool condition, const char *file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  const unsigned char own = condition;
  unsigned char all[32];
  weft::emulate::exchange(mask, &own, sizeof own, all, file, line);
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= unsigned(all[lane] == 1) << lane;
  return bits;
}
