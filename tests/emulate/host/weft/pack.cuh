// The functions of codegen/device/pack.cuh on the host.
#pragma once

#include "emulate_keywords.h"

#include "weft/types.cuh"

namespace weft {

/// cvt.rn.f16x2.f32, cvt.rn.bf16x2.f32
template <typename T>
unsigned packPair(T *, float low, float high) {
  return narrow<T>(low).bits | unsigned(narrow<T>(high).bits) << 16;
}

}  // namespace weft
