// Most pairs of states differ in some tensor and by less than the cheapest transpose, so layouts
// are compared eight tensors at once first.
#include "passes/select/Dominance.h"

#include <algorithm>
#include <cstring>

namespace weft::select {
namespace {

constexpr size_t wordLength = sizeof(uint64_t) / sizeof(LayoutMask);

/// Layouts of `to` that `from` lacks, of the tensors from `index` on.
uint64_t missingAt(MaskView from, MaskView to, size_t index) {
  uint64_t has = 0, wants = 0;
  const size_t bytes = std::min(sizeof has, (from.size() - index) * sizeof(LayoutMask));
  std::memcpy(&has, from.data() + index, bytes);
  std::memcpy(&wants, to.data() + index, bytes);
  return wants & ~has;
}

}  // namespace

Dominance::Dominance(const Layer &layer, const Prices &prices) : layer(layer), prices(prices) {
  for (const int tensor : layer.tracked) {
    const int count = static_cast<int>(prices.layouts(tensor).size());
    for (int from = 0; from < count; ++from)
      for (int to = 0; to < count; ++to)
        if (from != to)
          leastTranspose = std::min(leastTranspose, prices.transposeSeconds(tensor, from, to));
  }
}

bool Dominance::reaches(MaskView from, MaskView to, double seconds) const {
  if (seconds < 0) return false;
  for (size_t word = 0; word < from.size(); word += wordLength) {
    if (missingAt(from, to, word) == 0) continue;
    if (seconds < leastTranspose) return false;
    for (size_t i = word; i < std::min(word + wordLength, from.size()); ++i) {
      const LayoutMask missing = to[i] & ~from[i];
      for (int l = 0; missing >> l && seconds >= 0; ++l)
        if (missing >> l & 1)
          seconds -= prices.cheapestTranspose(layer.tracked[i], from[i], l).second;
    }
    if (seconds < 0) return false;
  }
  return true;
}

}  // namespace weft::select
