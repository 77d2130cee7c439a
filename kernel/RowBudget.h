// How much of a row one thread keeps in registers between the passes over it. Lowering decides by these numbers whether a
// row is read once or once a pass; the cost model counts the reads by the same numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

/// Registers one tensor of a row may take in a thread, as floats.
constexpr int64_t rowFloatsPerTensor = 64;

/// Registers all tensors of a row may take in a thread together, as floats: what 65536 registers leave to `threads`.
constexpr int64_t rowFloatBudget(int64_t threads) { return std::clamp<int64_t>(65536 / threads - 56, 16, 160); }

}  // namespace weft
