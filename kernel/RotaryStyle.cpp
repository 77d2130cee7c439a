// The words of the attribute `style`; see RotaryStyle.h.
#include "kernel/RotaryStyle.h"

#include "kernel/Error.h"
#include "kernel/WordTable.h"

namespace weft {
namespace {

constexpr WordTable<RotaryStyle, 2> styleWords = {
    {{RotaryStyle::halved, "halved"}, {RotaryStyle::interleaved, "interleaved"}}};

}  // namespace

std::string_view nameOf(RotaryStyle style) { return wordOf(styleWords, style); }

std::optional<RotaryStyle> rotaryStyleNamed(std::string_view name) {
  return valueNamed(styleWords, name);
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
