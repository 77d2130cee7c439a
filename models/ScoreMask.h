// Which keys a query sees, where a caller may choose it (--mask).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::models {

/// With fewer queries than keys, queries stand at the last positions of the keys (ir/SPEC.md).
struct ScoreMask {
  bool causal = false;                 ///< no key behind the query's own position
  std::optional<int64_t> window = {};  ///< keys on each side of the query's own that it sees
  bool padding = false;                ///< keys from lengths[b] on are hidden, an argument
  bool document = false;               ///< keys of other segments are hidden: segments[b, k]
  bool isNone() const { return *this == ScoreMask(); }
  bool operator==(const ScoreMask &) const = default;
};

/// Of "causal", "window=N", "padding" and "document", each at most once. Throws Error(badInput)
/// with the word and the nearest one.
ScoreMask parseScoreMask(const std::vector<std::string> &words);
/// "causal,window=128"; empty: none.
std::string textOf(const ScoreMask &mask);

}  // namespace weft::models
