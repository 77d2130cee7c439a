// The words of the attribute `style`, and the attributes of axes; see RotaryStyle.h.
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

std::optional<RotatedPairs> rotatedPairs(const Kernel &kernel, OpId index) {
  const BodyOp &op = kernel.body[index];
  if (op.kind != OpKind::rotary || op.expression.empty() || !hasAttribute(op, attribute::dim) ||
      !hasAttribute(op, attribute::position))
    return std::nullopt;
  const std::vector<AxisId> &axes = kernel.values[size_t(op.operands[0])].axes;
  const auto axisOf = [&](AttributeName<int64_t> name) {
    return axes[size_t(attributeOf(op, name))];
  };
  RotatedPairs pairs{
      .op = index, .pairs = axisOf(attribute::dim), .position = axisOf(attribute::position)};
  pairs.extent = kernel.axes[size_t(pairs.pairs)].extent;
  pairs.turned = attributeOr(op, attribute::turned, pairs.extent);
  pairs.style = rotaryStyleOf(op);
  pairs.isReverse = hasAttribute(op, attribute::direction);
  if (hasAttribute(op, attribute::among)) {
    pairs.among = axisOf(attribute::among);
    pairs.begin = attributeOr(op, attribute::begin, 0);
    pairs.end = attributeOr(op, attribute::end, 0);
  }
  return pairs;
}

}  // namespace weft
