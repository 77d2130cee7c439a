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
  bool attentionMask = false;          ///< the same of keys whose attention_mask[b, k] is 0
  bool document = false;               ///< keys of other segments are hidden: segments[b, k]
  /// Keys of tiles that do not exist are hidden: a pattern with its parameters
  /// (kernel/BlockMask.h), or "FILE.npy(block=64)", a table of its tiles.
  std::optional<std::string> blocks = {};
  bool isNone() const { return *this == ScoreMask(); }
  bool operator==(const ScoreMask &) const = default;
};

/// Of "causal", "window=N", "padding" or "attention-mask", "document" and one block mask, each at
/// most once; a text is one of them or several, with a comma between. The path of a FILE.npy may
/// hold commas and parentheses. Throws Error(badInput) with the word and the nearest one.
ScoreMask parseScoreMask(const std::vector<std::string> &texts);
/// What --mask takes, for lists of what is known.
std::vector<std::string> scoreMaskWords();
/// The block mask of a graph with so many heads, queries and keys as text of a pattern: as it is,
/// or read from its file. Heads that share keys are neighbours, `headsOfGroup` of them; a file's
/// tables are one for all heads, one a head, or one a group. Throws Error(badInput) that names the
/// word where it does not fit.
std::string blockMaskOf(const std::string &blocks, int64_t heads, int64_t headsOfGroup,
                        int64_t queries, int64_t keys);
/// "causal,window=128"; empty: none.
std::string textOf(const ScoreMask &mask);

}  // namespace weft::models
