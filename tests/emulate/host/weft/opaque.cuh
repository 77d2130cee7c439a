// The functions of codegen/device/opaque.cuh on the host.
#pragma once

#include "emulate_keywords.h"

namespace weft {

inline float opaque(float value) { return value; }
inline unsigned opaqueZero() { return 0; }

}  // namespace weft
