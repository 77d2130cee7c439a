// The words of the attribute `style`; see RotaryStyle.h.
#include "kernel/RotaryStyle.h"

#include "kernel/Error.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

constexpr std::array<std::pair<RotaryStyle, std::string_view>, 2> styleWords = {
    {{RotaryStyle::halved, "halved"}, {RotaryStyle::interleaved, "interleaved"}}};

}  // namespace

std::string_view nameOf(RotaryStyle style) {
  return std::ranges::find(styleWords, style, [](const auto &word) { return word.first; })->second;
}

std::optional<RotaryStyle> rotaryStyleNamed(std::string_view name) {
  const auto found =
      std::ranges::find(styleWords, name, [](const auto &word) { return word.second; });
  return found == styleWords.end() ? std::nullopt : std::optional(found->first);
}

RotaryStyle rotaryStyleOf(const BodyOp &rotary) {
  const auto style = rotary.attributes.find("style");
  if (style == rotary.attributes.end()) return RotaryStyle::halved;
  const auto *word = std::get_if<std::string>(&style->second);
  const std::optional<RotaryStyle> named = word ? rotaryStyleNamed(*word) : std::nullopt;
  if (!named) throw Error::checkFailed("a rotary op of style '{}'", word ? *word : "a number");
  return *named;
}

}  // namespace weft
