// How much of a row one thread keeps in registers between the passes over it. Lowering decides by
// these numbers whether a row is read once or once a pass; the cost model counts the reads by the
// same numbers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {

/// Registers one tensor of a row may take in a thread, as floats.
constexpr int64_t rowFloatsPerTensor = 64;

/// Registers all tensors of a row may take in a thread together, as floats: what 65536 registers
/// leave to `threads`.
constexpr int64_t rowFloatBudget(int64_t threads) {
  return std::clamp<int64_t>(65536 / threads - 56, 16, 160);
}

/// Whether so many floats, beside 16 addresses and counters, take the half of 65536 registers that
/// a second block of `threads` needs.
constexpr bool takeHalf(double floats, int64_t threads) {
  return (floats + 16) * static_cast<double>(threads) >= 65536.0 / 2;
}

/// Steps in flight of a loop that ends with the last packed token, which is known at run time
/// alone: it is not unrolled whole.
constexpr int stepsToTokens = 4;

/// Steps of a column that blocks of the grid share whose loads a thread issues before it uses the
/// first: a power of two. A step loads `words` registers (H200 runs: of f16 in vectors of 8, one
/// tensor is fastest with 8 steps, two and three with 4).
constexpr int64_t stepsInFlight(int64_t words, int64_t steps) {
  constexpr int64_t mostWords = 60, mostSteps = 8;
  int64_t batch = 1;
  while (words > 0 && batch < mostSteps && 2 * batch <= steps && 2 * batch * words <= mostWords)
    batch *= 2;
  return batch;
}

}  // namespace weft
