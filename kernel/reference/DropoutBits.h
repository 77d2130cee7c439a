// Dropout bits exactly as SPEC.md ("Dropout bits") fixes them: a function of (seed, stream, step,
// logical coordinates). The one host implementation, used by the interpreter and by the point
// evaluator.
#pragma once

#include "kernel/Dropout.h"

#include <array>
#include <cstdint>

namespace weft::reference {

/// Philox4x32 with 7 rounds ("Parallel Random Numbers: As Easy as 1, 2, 3", section 3.3).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// What four words of coordinates and key come to: every word takes in the product of two others,
/// twice, with its high half folded into the low one each time (after pcg4d of "Hash Functions for
/// GPU Rendering", JCGT 9(3), 2020).
std::array<uint32_t, 4> mixed(std::array<uint32_t, 4> words);

/// Seed and step are read from device memory; the stream is a number of the op.
struct DropoutSource {
  uint64_t seed = 1, step = 0;
  uint32_t stream = 0;
};

/// The 16-bit draw of element (outer, row, column) of the [outer][rows][columns] view.
uint32_t dropoutDraw(const DropoutSource &source, int64_t outer, int64_t row, int64_t column);

/// An element whose draw is below this is dropped.
uint32_t dropoutThreshold(double p);

}  // namespace weft::reference
