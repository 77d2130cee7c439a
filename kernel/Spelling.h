// How the values of an enum are spelled on the command line and in JSON: one table each, in the
// order in which messages list them.
#pragma once

#include "kernel/Error.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

template <typename Value>
struct Spelling {
  std::string_view name;
  Value value;
};

/// The table of a type; specialized beside the type, or where its values are read.
template <typename Value>
inline constexpr std::array<Spelling<Value>, 0> spellings{};

/// Throws Error(checkFailed) for a value that the table lacks.
template <typename Value>
std::string_view spelled(const Value &value) {
  for (const Spelling<Value> &one : spellings<Value>)
    if (one.value == value) return one.name;
  throw Error::checkFailed("a value without a spelling");
}

/// The value of a word; nothing if the table lacks it.
template <typename Value>
std::optional<Value> parseSpelled(std::string_view word) {
  for (const Spelling<Value> &one : spellings<Value>)
    if (one.name == word) return one.value;
  return std::nullopt;
}

template <typename Value>
std::vector<std::string> allSpellings() {
  std::vector<std::string> names;
  for (const Spelling<Value> &one : spellings<Value>) names.emplace_back(one.name);
  return names;
}

}  // namespace weft
