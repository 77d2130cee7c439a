// JSON as text for people: members sorted, two spaces, one line a short array, so that `diff` shows
// one line a change.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace weft::runtime {

/// Of every JSON object that a command prints: raised when a member goes or means something else,
/// not when one is added.
constexpr int jsonVersion = 1;

/// Ends with a newline. Throws std::logic_error for numbers that JSON cannot hold (infinite, not a
/// number).
std::string prettyText(const nlohmann::json &json);

/// What a command prints with --json: the object with its version, as prettyText.
std::string resultText(nlohmann::json object);

/// Throws Error(badInput) naming `where` and the line. Duplicate member names are errors, and so is
/// nesting that a stack may not hold (kernel/Nesting.h).
nlohmann::json parseJson(std::string_view text, const std::string &where);

}  // namespace weft::runtime
