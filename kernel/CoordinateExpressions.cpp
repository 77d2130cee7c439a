// Masks and rotary embedding as trees; see CoordinateExpressions.h.
#include "kernel/CoordinateExpressions.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weft {
namespace {

using E = Expression;

constexpr std::array<std::pair<MaskShape::Kind, std::string_view>, 4> maskWords = {
    {{MaskShape::Kind::causal, "causal"},
     {MaskShape::Kind::window, "window"},
     {MaskShape::Kind::padding, "padding"},
     {MaskShape::Kind::block, "block"}}};

E visible(const MaskShape &mask) {
  const E key = E::coordinate(mask.key), query = E::coordinate(mask.query);
  const E position =
      mask.shift == 0 ? query : E::binary(ScalarOperator::add, query, E::integer(mask.shift));
  switch (mask.kind) {
    case MaskShape::Kind::padding:
      return E::binary(ScalarOperator::less, key, E::operand(1, ScalarType::i32));
    case MaskShape::Kind::block: {
      const E size = E::integer(mask.size);
      const E element = E::element(1,
                                   {E::binary(ScalarOperator::divide, query, size),
                                    E::binary(ScalarOperator::divide, key, size)},
                                   ScalarType::i32);
      return E::binary(ScalarOperator::notEqual, element, E::integer(0));
    }
    case MaskShape::Kind::causal: return E::binary(ScalarOperator::lessEqual, key, position);
    case MaskShape::Kind::window: break;
  }
  return E::binary(ScalarOperator::both,
                   E::binary(ScalarOperator::greaterEqual, key,
                             E::binary(ScalarOperator::subtract, position, E::integer(mask.left))),
                   E::binary(ScalarOperator::lessEqual, key,
                             E::binary(ScalarOperator::add, position, E::integer(mask.right))));
}

}  // namespace

std::string_view nameOf(MaskShape::Kind kind) {
  return std::ranges::find(maskWords, kind, [](const auto &word) { return word.first; })->second;
}

std::optional<MaskShape::Kind> maskKindNamed(std::string_view name) {
  const auto found =
      std::ranges::find(maskWords, name, [](const auto &word) { return word.second; });
  return found == maskWords.end() ? std::nullopt : std::optional(found->first);
}

Expression maskExpression(const MaskShape &mask) {
  return E::select(visible(mask), E::operand(0), E::literal(mask.fill));
}

Expression rotaryExpression(const RotaryShape &rotary) {
  const E here = E::coordinate(rotary.dimension), half = E::integer(rotary.extent / 2),
          two = E::integer(2);
  const E isFirst = rotary.isHalved
                        ? E::binary(ScalarOperator::less, here, half)
                        : E::binary(ScalarOperator::equal,
                                    E::binary(ScalarOperator::modulo, here, two), E::integer(0));
  const E partnerPlace = rotary.isHalved
                             ? E::select(isFirst, E::binary(ScalarOperator::add, here, half),
                                         E::binary(ScalarOperator::subtract, here, half))
                             : E::binary(ScalarOperator::bitXor, here, E::integer(1));
  const E pair = E::binary(rotary.isHalved ? ScalarOperator::modulo : ScalarOperator::divide, here,
                           rotary.isHalved ? half : two);
  std::vector<E> places;
  for (int other = 0; other < rotary.rank; ++other)
    places.push_back(other == rotary.dimension ? partnerPlace : E::coordinate(other));
  const E x = E::operand(0), partner = E::element(0, places),
          minusPartner = E::unary(ScalarOperator::negate, partner);
  const E scale = E::literal(-2.0 * std::log2(rotary.base) / static_cast<double>(rotary.extent));
  const E turn = E::call("weft::rotation", {E::coordinate(rotary.position),
                                            E::call("weft::rotaryFrequency", {pair, scale})});
  return E::binary(ScalarOperator::add,
                   E::binary(ScalarOperator::multiply, x, E::member("cosine", turn)),
                   E::binary(ScalarOperator::multiply,
                             rotary.isReverse ? E::select(isFirst, partner, minusPartner)
                                              : E::select(isFirst, minusPartner, partner),
                             E::member("sine", turn)));
}

}  // namespace weft
