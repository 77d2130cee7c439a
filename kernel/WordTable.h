// The words of an enumeration in files and messages, and back, by one table of pairs.
//
// Invariant: a table has every value once, and every word once.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace weft {

template <typename Value, size_t count>
using WordTable = std::array<std::pair<Value, std::string_view>, count>;

template <typename Value, size_t count>
constexpr std::string_view wordOf(const WordTable<Value, count> &table, Value value) {
  return std::ranges::find(table, value, [](const auto &one) { return one.first; })->second;
}

/// Nothing for a word that the table has not.
template <typename Value, size_t count>
constexpr std::optional<Value> valueNamed(const WordTable<Value, count> &table,
                                          std::string_view word) {
  const auto found = std::ranges::find(table, word, [](const auto &one) { return one.second; });
  return found == table.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace weft
