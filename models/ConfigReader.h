// One config.json object, read key by key. Invariant: every key that was asked for is remembered,
// so that what is left at the end is exactly what did not influence the layer. Every error names
// file, key, value and limit.
#pragma once

#include "kernel/Error.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::models {

/// Spellings of one setting, the family's own first ({"n_embd", "hidden_size"}).
using Keys = std::vector<std::string>;

/// Of dropout: at least 0 and below 1.
bool isProbability(const nlohmann::json &value);
inline constexpr const char *noProbability = "must be a probability: at least 0 and below 1";

class ConfigReader {
public:
  /// Parses a JSON object. Throws Error(badInput) with line and column for malformed or truncated
  /// text, for a root that is not an object and for a key that occurs twice.
  ConfigReader(std::string_view text, std::string where);

  /// A null value counts as absent everywhere, as in the files' own readers.
  std::optional<int64_t> integer(const Keys &keys, int64_t minimum = 1);
  int64_t requiredInteger(const Keys &keys);
  /// A finite number above zero.
  double positive(const Keys &keys, double absent);
  /// At least 0 and below 1, of dropout. What is taken for a missing key or a null value is
  /// remembered apart from what is assumed, since training alone asks.
  double probability(const std::string &key, double absent);
  /// Keys of probabilities that the object has; "KEY = VALUE" of those taken for missing keys.
  const std::vector<std::string> &probabilityKeys() const { return probabilityKeys_; }
  const std::vector<std::string> &assumedProbabilities() const { return assumedProbabilities_; }
  bool flag(const std::string &key, bool absent);
  std::string text(const Keys &keys, const std::string &absent);
  std::string requiredText(const std::string &key);

  /// As integer(), but what is taken for a missing key is remembered as assumed; nothing for a null
  /// value.
  std::optional<int64_t> integerOr(const std::string &key, int64_t absent);
  /// As positive(), but what is taken for a missing key or a null value is remembered as assumed.
  double positiveOr(const Keys &keys, double absent);
  /// Remembers "KEY = VALUE", which the family takes for a missing key.
  void assume(const std::string &key, const std::string &value) {
    assumed_.push_back(fmt::format("{} = {}", key, value));
  }
  const std::vector<std::string> &assumed() const { return assumed_; }
  /// Remembers what is to be said of the layer that is built.
  void note(const std::string &text) { notes_.push_back(text); }
  const std::vector<std::string> &notes() const { return notes_; }

  /// Error(unsupported) if the flag is set, with the reason.
  void rejectFlag(const std::string &key, std::string_view reason);
  /// Error(unsupported) if the key has any value but null, false, an empty list or an empty object.
  void rejectValue(const std::string &key, std::string_view reason);
  /// The value, marked as read; null if absent.
  const nlohmann::json *find(const std::string &key);

  /// Keys that nobody read; sorted.
  std::vector<std::string> unread() const;
  /// Keys that were asked for, whether the object has them or not; sorted.
  const std::set<std::string> &keysRead() const { return read_; }
  std::vector<std::string> keys() const;
  bool hasAny(const Keys &keys) const;
  bool has(const std::string &key) const { return object_.contains(key); }
  /// The value of a key that the object has, without marking it as read.
  const nlohmann::json &value(const std::string &key) const { return object_.at(key); }

  /// "config.json: key 'hidden_size' = 100: must be even", as an error of the given kind.
  Error error(ErrorKind kind, const std::string &key, std::string_view reason) const;
  const std::string &where() const { return where_; }

private:
  const nlohmann::json *find(const Keys &keys, std::string &found);

  std::string where_;
  nlohmann::json object_;
  std::set<std::string> read_;
  std::vector<std::string> assumed_, notes_, probabilityKeys_, assumedProbabilities_;
};

}  // namespace weft::models
