// The words of the attribute `style`; see RotaryStyle.h.
#include "kernel/RotaryStyle.h"

#include "kernel/Attributes.h"
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
  const std::string *word = findAttribute(rotary, attribute::style);
  if (!word) return RotaryStyle::halved;
  const std::optional<RotaryStyle> named = rotaryStyleNamed(*word);
  if (!named) throw Error::checkFailed("a rotary op of style '{}'", *word);
  return *named;
}

}  // namespace weft
