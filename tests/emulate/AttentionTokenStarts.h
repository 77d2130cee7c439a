// Where the sequence of each packed token starts, as a rotary embedding of packed queries reads it.
#pragma once

#include "tests/emulate/EmittedRun.h"

#include <vector>

namespace weft::emulate {

/// Fills a tensor over packed tokens with the offset of each token's sequence; 0 in front of all of
/// them.
inline void fillTokenStarts(const std::vector<double> &offsets, const Tensor &tensor) {
  tensor.forEach([&](std::span<const int64_t> at) {
    double start = 0;
    for (const double offset : offsets)
      if (offset <= double(at[0])) start = offset;
    reference::storeElement(tensor.type, tensor.at(at), start);
  });
}

}  // namespace weft::emulate
