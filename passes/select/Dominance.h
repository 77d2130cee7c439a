// Whether one state of a layer is as good as another one by transposes alone. Asked of millions of
// pairs of states, most of which differ in some tensor and by less than the cheapest transpose.
#pragma once

#include "passes/select/FinishedOpLattice.h"
#include "passes/select/Outcomes.h"

#include <cstdint>
#include <cstring>

namespace weft::select {

class Dominance {
public:
  Dominance(const Layer &layer, const Prices &prices);

  /// Whether a state with `from` can be brought to the layouts `to` within `seconds`, which may be
  /// negative.
  bool reaches(MaskView from, MaskView to, double seconds) const {
    if (seconds < 0) return false;
    return seconds < leastTranspose ? has(from, to) : reachesByTransposes(from, to, seconds);
  }

private:
  static constexpr size_t wordLength = sizeof(uint64_t) / sizeof(LayoutMask);

  /// Layouts of `to` that `from` lacks, of eight tensors from `index` on.
  static uint64_t missingAt(MaskView from, MaskView to, size_t index) {
    uint64_t has = 0, wants = 0;
    std::memcpy(&has, from.data() + index, sizeof has);
    std::memcpy(&wants, to.data() + index, sizeof wants);
    return wants & ~has;
  }
  /// Whether `from` has every layout of `to`.
  static bool has(MaskView from, MaskView to) {
    const size_t size = from.size();
    if (size < wordLength) {
      unsigned missing = 0;
      for (size_t i = 0; i < size; ++i) missing |= to[i] & ~unsigned(from[i]);
      return missing == 0;
    }
    for (size_t index = 0; index + wordLength < size; index += wordLength)
      if (missingAt(from, to, index) != 0) return false;
    return missingAt(from, to, size - wordLength) == 0;  // the last eight, some of them again
  }
  bool reachesByTransposes(MaskView from, MaskView to, double seconds) const;

  const Layer &layer;
  const Prices &prices;
  double leastTranspose = infinite;  ///< of any tracked tensor
};

}  // namespace weft::select
