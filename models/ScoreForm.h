// What happens to scores between their scale and their masks (--score).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::models {

struct ScoreForm {
  /// The score becomes c tanh(score / c) (Gemma 2, section 2).
  std::optional<double> softcap = {};
  /// A slope of each head times the distance of key and query is added: the exponent of the
  /// steepest step (Press et al. 2022: 8).
  std::optional<double> alibi = {};
  /// An element of a table [heads, 2 N + 1] is added, by the distance of key and query, clipped to
  /// N on either side; the table is an argument.
  std::optional<int64_t> relative = {};
  /// The table is that of T5: buckets [n, heads], of distances up to `relative`.
  bool hasBuckets = false;
  /// Buckets are of distances to earlier keys alone, whatever masks say.
  bool hasCausalBuckets = false;
  bool isNone() const { return *this == ScoreForm(); }
  bool operator==(const ScoreForm &) const = default;
};

/// Of "softcap=C", "alibi" and "relative=N", each at most once. Throws Error(badInput) with the
/// word and the nearest one.
ScoreForm parseScoreForm(const std::vector<std::string> &words);
/// "alibi,softcap=50"; empty: none.
std::string textOf(const ScoreForm &form);

}  // namespace weft::models
