// Queries and keys of attentions whose scores are hard for a softmax.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace weft::samples {

/// Of rows of scores.
///   usual    whatever inputs give
///   equal    all alike
///   oneHuge  one key far above all others
///   extreme  products of +-6e4 with a scale of 1/8 and 32 columns, as large as f16 holds
///   lowest   all of about -6e4: no maximum is near zero
///   tiny     of the least numbers that f16 has: scores are zero or next to it
enum class ScoreKind { usual, equal, oneHuge, extreme, lowest, tiny };
inline constexpr ScoreKind adversarialScores[] = {
    ScoreKind::equal, ScoreKind::oneHuge, ScoreKind::extreme, ScoreKind::lowest, ScoreKind::tiny};

/// An element of queries or keys; `at` ends with the position and the column, of `columns`.
inline double adversarialElement(ScoreKind scores, bool isKey, std::span<const int64_t> at,
                                 int64_t columns) {
  const int64_t position = at[at.size() - 2], column = at[at.size() - 1];
  const double wide = std::sqrt(32 / double(columns));  // products stay in the type
  switch (scores) {
    case ScoreKind::oneHuge:
      return isKey && position == 7 ? 8 : double((position * 5 + column * 3) % 7) / 8;
    case ScoreKind::extreme:
      return wide * (isKey ? (position % 3 == 0 ? 150 : -150) : (position % 2 == 0 ? 100 : -100));
    case ScoreKind::lowest: return wide * (isKey ? -150 : 100);
    case ScoreKind::tiny: return std::ldexp(double((position + column) % 3 - 1), -24);
    default: return 0.5;  // equal
  }
}

}  // namespace weft::samples
