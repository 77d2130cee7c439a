// Layouts that one state has and another one lacks; see Dominance.h.
#include "passes/select/Dominance.h"

#include <algorithm>

namespace weft::select {

Dominance::Dominance(const Layer &layer, const Prices &prices) : layer(layer), prices(prices) {
  for (const int tensor : layer.tracked) {
    const int count = static_cast<int>(prices.layouts(tensor).size());
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to)
        if (from != to)
          leastTranspose = std::min(leastTranspose, prices.transposeSeconds(tensor, from, to));
  }
}

bool Dominance::reachesByTransposes(MaskView from, MaskView to, double seconds) const {
  for (size_t i = 0; i < from.size(); ++i) {
    const LayoutMask missing = to[i] & ~from[i];
    for (int l = 0; missing >> l && seconds >= 0; ++l)
      if (missing >> l & 1)
        seconds -= prices.cheapestTranspose(layer.tracked[i], from[i], l).second;
    if (seconds < 0) return false;
  }
  return true;
}

}  // namespace weft::select
