// The functions of codegen/device/opaque.cuh on the host.
#pragma once

#include "emulate_keywords.h"

namespace weft {

inline float opaque(float value) { return value; }
inline int opaque(int value, int lane) { return __shfl_sync(~0u, value, lane); }
inline unsigned opaqueZero() { return 0; }

}  // namespace weft
