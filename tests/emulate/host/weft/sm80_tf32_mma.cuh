// The functions of codegen/device/sm80_tf32_mma.cuh on the emulator.
#pragma once

#include "emulate_keywords.h"

#include "weft/sm80.cuh"

#include <bit>

namespace weft::sm80 {

/// cvt.rna.tf32.f32: nearest, ties away from zero; infinities stay, NaN becomes the one that the
/// device makes.
inline unsigned roundToTf32(unsigned bits) {
  constexpr unsigned infinity = 0x7F800000, magnitude = 0x7FFFFFFF, lower = 0x1FFF;
  if ((bits & magnitude) > infinity) return magnitude & ~lower;
  return (bits & magnitude) == infinity ? bits : (bits + (lower + 1) / 2) & ~lower;
}

/// mma.sync.m16n8k8 of tf32, which reads the upper 19 bits of its operands; what is below is taken
/// for a mistake.
inline void multiplyTf32(float &sum0, float &sum1, float &sum2, float &sum3, const unsigned (&a)[4],
                         unsigned b0, unsigned b1, const char *file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  const auto element = [](unsigned word) {
    if (word & 0x1FFF) __builtin_trap();
    return std::bit_cast<float>(word);
  };
  const weft::emulate::MmaOperands own = {
      {element(a[0]), element(a[1]), element(a[2]), element(a[3])}, {element(b0), element(b1)}};
  float sums[4] = {sum0, sum1, sum2, sum3};
  weft::emulate::multiplyAccumulate8(sums, own, file, line);
  sum0 = sums[0], sum1 = sums[1], sum2 = sums[2], sum3 = sums[3];
}

/// cp.async.ca.shared.global of 4 bytes with a source size
inline void copyWordAsync(SharedAddress to, const void *from, int bytes) {
  if (reinterpret_cast<uintptr_t>(from) % 4 != 0 || to % 4 != 0 || (bytes != 0 && bytes != 4))
    __builtin_trap();
  pendingCopies().groups.back().push_back({to, from, bytes, 4});
}

inline unsigned loadSharedWord(SharedAddress from) { return *sharedPlace<unsigned>(from); }

}  // namespace weft::sm80
