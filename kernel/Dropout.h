// The factor of the elements that dropout keeps (ir/SPEC.md, "Dropout bits").
#pragma once

namespace weft {

/// 1 / (1 - p), in fp32.
inline float dropoutScale(double p) { return 1.0f / (1.0f - float(p)); }

}  // namespace weft
