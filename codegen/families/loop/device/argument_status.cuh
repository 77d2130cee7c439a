// What kernels say of integers that a caller brought in GPU memory and that are out of range: one
// word an argument, which the host reads after the run (kernel/ArgumentStatus.h).
//
// Invariant: a word has all bits set until an element is out of range, and then names the first of
// them, whichever thread saw it first. Only such an element costs more than a comparison.
#pragma once

#include "weft/status_word.cuh"
#include "weft/types.cuh"

namespace weft {

/// The place of an element in the upper half, its value in the lower one.
struct ArgumentStatus {
  unsigned long long word;
};

__device__ __forceinline__ void reportElement(ArgumentStatus *status, int place, int value) {
  lowerWord(&status->word,
            static_cast<unsigned long long>(unsigned(place)) << 32 | unsigned(value));
}

/// The length of sequence `place`, held to [0, bound]; one outside is reported.
__device__ __forceinline__ int checkedLength(int length, int bound, int place,
                                             ArgumentStatus *status) {
  if (unsigned(length) > unsigned(bound)) reportElement(status, place, length);
  return smaller(larger(length, 0), bound);
}

/// How many elements of row `place` of a mask are 1, of which the last stands in front of `end`; a
/// row that has a 0 among them is reported, with the place of the last one in it.
__device__ __forceinline__ int checkedPrefix(int tokens, int end, int place,
                                             ArgumentStatus *status) {
  if (end != tokens) reportElement(status, place, end - 1);
  return tokens;
}

}  // namespace weft
