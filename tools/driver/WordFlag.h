// A flag that takes one word of a table (kernel/Spelling.h). CLI11 fills `text`; check() rejects
// what the table lacks, and everything else compares values.
#pragma once

#include "kernel/Nearest.h"
#include "kernel/Spelling.h"

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

}  // namespace weft::driver
