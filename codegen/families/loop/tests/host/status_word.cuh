// The smallest of what threads say; they take turns on the host.
#pragma once

namespace weft {

inline void lowerWord(unsigned long long *word, unsigned long long value) {
  if (value < *word) *word = value;
}

}  // namespace weft
