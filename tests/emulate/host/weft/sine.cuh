// The functions of codegen/device/sine.cuh on the host.
#pragma once

#include "emulate_keywords.h"

#include <cmath>

namespace weft::ptx {

inline float sine(float angle) { return std::sin(angle); }
inline float cosine(float angle) { return std::cos(angle); }

}  // namespace weft::ptx
