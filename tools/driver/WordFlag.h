// A flag that takes one word of a table (kernel/Spelling.h). CLI11 fills `text`; check() rejects
// what the table lacks, and everything else compares values.
#pragma once

#include "kernel/Nearest.h"
#include "kernel/Spelling.h"
#include "passes/Choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::driver {

template <typename Value>
struct WordFlag {
  std::string text;

  WordFlag(const Value &value) : text(spelled(value)) {}
  /// Throws Error(checkFailed) before check() for a word that the table lacks.
  Value value() const {
    if (const std::optional<Value> known = parseSpelled<Value>(text)) return *known;
    throw Error::checkFailed("'{}' was not checked", text);
  }
  bool operator==(const Value &other) const {
    const std::optional<Value> known = parseSpelled<Value>(text);
    return known && *known == other;
  }
  bool operator==(const WordFlag &) const = default;
  /// Throws Error(badInput) naming the flag and the nearest word.
  void check(const std::string &flag) const {
    if (!parseSpelled<Value>(text))
      throw Error::badInput("{} {}: unknown value{}", flag, text,
                            nearestAndKnown(text, allSpellings<Value>()));
  }
};

/// One word for all sites, words for single ones (Choices.h), or both: "auto,layer2_prob=fused".
/// `usual`: of the sites that no word is of.
template <typename Value, Value usual>
struct SitesFlag {
  std::string text;

  SitesFlag(const Value &value = usual) : text(spelled(value)) {}
  /// Of the sites that are not named.
  Value value() const {
    for (const auto &[site, word] : entries())
      if (site.empty()) return valueOf(word);
    return usual;
  }
  std::vector<SitePin<Value>> sites() const {
    std::vector<SitePin<Value>> pins;
    for (const auto &[site, word] : entries())
      if (!site.empty()) pins.push_back({std::string(site), valueOf(word)});
    return pins;
  }
  /// Whether all other sites have this one; of a text that was not checked, no.
  bool operator==(const Value &other) const { return isChecked() && value() == other; }
  bool operator==(const SitesFlag &) const = default;
  /// Asks this of the sites that are not named.
  void setOthers(const Value &value) {
    std::string all(spelled(value));
    for (const SitePin<Value> &pin : sites())
      all += fmt::format(",{}={}", pin.site, spelled(pin.kind));
    text = std::move(all);
  }
  /// Whether a site, or all others, have it.
  bool isAnywhere(const Value &wanted) const {
    return *this == wanted || std::ranges::count(sites(), wanted, &SitePin<Value>::kind) > 0;
  }
  /// Throws Error(badInput) naming the flag and the nearest word, and for a site that is named
  /// twice.
  void check(const std::string &flag) const {
    std::vector<std::string_view> seen;
    for (const auto &[site, word] : entries()) {
      if (!parseSpelled<Value>(word))
        throw Error::badInput("{} {}: unknown value '{}'{}", flag, text, word,
                              nearestAndKnown(word, allSpellings<Value>()));
      if (std::ranges::count(seen, site) > 0)
        throw Error::badInput("{} {}: two values for {}", flag, text,
                              site.empty() ? "all other sites" : fmt::format("'{}'", site));
      seen.push_back(site);
    }
  }

private:
  /// (site, word); without a site those of all others.
  std::vector<std::pair<std::string_view, std::string_view>> entries() const {
    std::vector<std::pair<std::string_view, std::string_view>> list;
    std::string_view rest = text;
    for (bool isLast = false; !isLast;) {
      const size_t end = rest.find(',');
      isLast = end == std::string_view::npos;
      const std::string_view entry = rest.substr(0, end);
      if (!isLast) rest.remove_prefix(end + 1);
      const size_t equals = entry.rfind('=');
      list.emplace_back(equals == std::string_view::npos ? "" : entry.substr(0, equals),
                        equals == std::string_view::npos ? entry : entry.substr(equals + 1));
    }
    return list;
  }
  bool isChecked() const {
    return std::ranges::all_of(
        entries(), [](const auto &entry) { return parseSpelled<Value>(entry.second).has_value(); });
  }
  Value valueOf(std::string_view word) const {
    if (const std::optional<Value> known = parseSpelled<Value>(word)) return *known;
    throw Error::checkFailed("'{}' was not checked", text);
  }
};

}  // namespace weft::driver
