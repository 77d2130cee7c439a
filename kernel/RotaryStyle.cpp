// The words of the attribute `style`, and the attributes of axes; see RotaryStyle.h.
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

std::optional<TurnedPairs> turnedPairs(const Kernel &kernel, OpId index) {
  const BodyOp &op = kernel.body[index];
  if (op.kind != OpKind::rotary || op.expression.empty() || !op.attributes.contains("dim") ||
      !op.attributes.contains("position"))
    return std::nullopt;
  const auto number = [&](const char *name, int64_t absent) {
    const auto found = op.attributes.find(name);
    return found == op.attributes.end() ? absent : std::get<int64_t>(found->second);
  };
  const std::vector<AxisId> &axes = kernel.values[size_t(op.operands[0])].axes;
  const auto axisOf = [&](const char *name) { return axes[size_t(number(name, 0))]; };
  TurnedPairs pairs{.op = index, .pairs = axisOf("dim"), .position = axisOf("position")};
  pairs.extent = kernel.axes[size_t(pairs.pairs)].extent;
  pairs.turned = number("turned", pairs.extent);
  pairs.style = rotaryStyleOf(op);
  pairs.isReverse = op.attributes.contains("direction");
  if (op.attributes.contains("among")) {
    pairs.among = axisOf("among");
    pairs.begin = number("begin", 0), pairs.end = number("end", 0);
  }
  return pairs;
}

}  // namespace weft
