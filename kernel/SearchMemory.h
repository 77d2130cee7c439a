// How the memory of a search (--search-memory) is divided: limits on counts and bytes of each of
// its data structures.
//
// The limits are on accounted bytes, which are estimates. Invariant: every limit is a function of
// the memory and of the graph, never of other threads or of the machine's load, so that equal input
// and equal --search-memory give equal plans.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weft {

class SearchMemory {
public:
  SearchMemory() = default;  ///< without a limit
  explicit SearchMemory(int64_t bytes) : bytes(bytes) {}

  bool isLimited() const { return bytes < std::numeric_limits<int64_t>::max(); }
  int64_t limit() const { return bytes; }
  /// Variants of a graph of so many ops: half of the memory. At least one.
  int64_t mostVariants(size_t ops) const {
    return std::max<int64_t>(1, bytes / 2 / (bytesOfOp * std::max<int64_t>(1, int64_t(ops))));
  }
  /// Fused candidates of each of so many variants: an eighth. At least eight.
  int mostCandidates(size_t variants) const {
    return int(
        std::clamp<int64_t>(bytes / 8 / (bytesOfKernel + int64_t(variants) * bytesOfCandidate), 8,
                            std::numeric_limits<int>::max()));
  }
  /// Records of attempts to fuse, of each of so many variants: a sixteenth.
  int64_t bytesOfRecords(size_t variants) const {
    return bytes / 16 / std::max<int64_t>(1, int64_t(variants));
  }
  /// Tables, layers and states of each of so many variants: a quarter. Some variants are searched
  /// concurrently; a finished one keeps little.
  int64_t bytesOfSearch(size_t variants) const {
    return bytes / 4 / std::clamp<int64_t>(int64_t(variants), 1, atOnce);
  }

private:
  static constexpr int64_t bytesOfOp =
      100'000;  ///< of a variant, with candidates, tables and what is left of its search
  static constexpr int64_t bytesOfKernel =
      150'000;  ///< spaces and best times of a kernel, which variants share
  static constexpr int64_t bytesOfCandidate = 16'000;  ///< a candidate of one variant
  static constexpr int64_t atOnce = 8;
  int64_t bytes = std::numeric_limits<int64_t>::max();
};

}  // namespace weft
