// Masks and rotary embedding as trees; see CoordinateExpressions.h.
#include "kernel/CoordinateExpressions.h"

#include "kernel/Attributes.h"
#include "kernel/MaskKind.h"
#include "kernel/WordTable.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weft {
namespace {

using E = Expression;

constexpr WordTable<MaskShape::Kind, 8> maskWords = {{{MaskShape::Kind::causal, "causal"},
                                                      {MaskShape::Kind::window, "window"},
                                                      {MaskShape::Kind::padding, "padding"},
                                                      {MaskShape::Kind::block, "block"},
                                                      {MaskShape::Kind::pattern, "pattern"},
                                                      {MaskShape::Kind::document, "document"},
                                                      {MaskShape::Kind::tokens, "tokens"},
                                                      {MaskShape::Kind::unread, "unread"}}};

E sum(const E &a, int64_t b) {
  return b == 0 ? a : E::binary(ScalarOperator::add, a, E::integer(b));
}

/// A position that counts from the start of its sequence.
E fromStart(const E &position) {
  return E::binary(ScalarOperator::add, position, E::operand(1, ScalarType::i32));
}

/// The number whose digits the coordinates along some dimensions are, slowest first.
E numberOf(const std::vector<int> &dimensions, const std::vector<int64_t> &extents) {
  E number = E::coordinate(dimensions.front());
  for (size_t digit = 1; digit < dimensions.size(); ++digit)
    number = E::binary(ScalarOperator::add,
                       E::binary(ScalarOperator::multiply, number, E::integer(extents[digit])),
                       E::coordinate(dimensions[digit]));
  return number;
}

E visible(const MaskShape &mask) {
  const E key = E::coordinate(mask.key), query = E::coordinate(mask.query);
  const E position = mask.hasStarts ? fromStart(query) : sum(query, mask.shift);
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
    case MaskShape::Kind::pattern:
      return E::call(DeviceFunctionId::hasBlock,
                     {E::attribute("pattern"),
                      mask.heads.empty() ? E::integer(0) : numberOf(mask.heads, mask.headExtents),
                      query, key});
    case MaskShape::Kind::document: {
      const E batch = E::coordinate(mask.batch);
      return E::binary(ScalarOperator::equal, E::element(1, {batch, key}, ScalarType::i32),
                       E::element(1, {batch, position}, ScalarType::i32));
    }
    case MaskShape::Kind::tokens:
    case MaskShape::Kind::unread:
      return E::binary(ScalarOperator::less, key,
                       E::element(1, {E::integer(mask.sequences)}, ScalarType::i32));
    case MaskShape::Kind::causal: return E::binary(ScalarOperator::lessEqual, key, position);
    case MaskShape::Kind::window: break;
  }
  const E window =
      E::binary(ScalarOperator::both,
                E::binary(ScalarOperator::greaterEqual, key,
                          E::binary(ScalarOperator::subtract, position, E::integer(mask.left))),
                E::binary(ScalarOperator::lessEqual, key,
                          E::binary(ScalarOperator::add, position, E::integer(mask.right))));
  if (mask.global == 0) return window;
  const E global = E::integer(mask.global);
  return E::binary(ScalarOperator::either, window,
                   E::binary(ScalarOperator::either, E::binary(ScalarOperator::less, key, global),
                             E::binary(ScalarOperator::less, position, global)));
}

}  // namespace

std::string_view nameOf(MaskShape::Kind kind) { return wordOf(maskWords, kind); }

std::optional<MaskShape::Kind> maskKindNamed(std::string_view name) {
  return valueNamed(maskWords, name);
}

Expression maskExpression(const MaskShape &mask) {
  // Not a number: that nothing reads it shows wherever something does.
  const double fill =
      mask.kind == MaskShape::Kind::unread ? std::numeric_limits<double>::quiet_NaN() : mask.fill;
  return E::select(visible(mask), E::operand(0), E::literal(fill));
}

std::optional<MaskShape::Kind> maskKind(const BodyOp &op) {
  const std::string *kind = op.kind == OpKind::mask ? findAttribute(op, attribute::kind) : nullptr;
  return kind ? maskKindNamed(*kind) : std::nullopt;
}

bool isMaskOfPacked(const BodyOp &op) {
  return maskKind(op) == MaskShape::Kind::padding && hasAttribute(op, attribute::packed);
}

bool isDocumentMask(const BodyOp &op) { return maskKind(op) == MaskShape::Kind::document; }
bool isTokensMask(const BodyOp &op) {
  return maskKind(op) == MaskShape::Kind::tokens || isUnreadMask(op);
}
bool isTokensMask(std::string_view kind) {
  return kind == nameOf(MaskShape::Kind::tokens) || kind == nameOf(MaskShape::Kind::unread);
}
bool isUnreadMask(const BodyOp &op) { return maskKind(op) == MaskShape::Kind::unread; }

namespace {

E rotaryFrequency(const RotaryShape &rotary, const E &pair) {
  const E scale = E::literal(-2.0 * std::log2(rotary.base) / static_cast<double>(rotary.turned));
  if (rotary.original == 0) {
    const E frequency = E::call(DeviceFunctionId::rotaryFrequency, {pair, scale});
    return rotary.factor == 1
               ? frequency
               : E::binary(ScalarOperator::multiply, frequency, E::literal(1 / rotary.factor));
  }
  // Of a frequency f the share that keeps it is (f original / 2 pi - low) / (high - low) in [0, 1].
  const double range = rotary.high - rotary.low;
  return E::call(DeviceFunctionId::scaledFrequency,
                 {pair, scale, E::literal(1 / rotary.factor),
                  E::literal(double(rotary.original) / (2 * std::acos(-1.0) * range)),
                  E::literal(-rotary.low / range)});
}

}  // namespace

Expression rotaryExpression(const RotaryShape &rotary) {
  const E here = E::coordinate(rotary.dimension), half = E::integer(rotary.turned / 2),
          two = E::integer(2);
  const bool isHalved = rotary.style == RotaryStyle::halved;
  const E isFirst = isHalved
                        ? E::binary(ScalarOperator::less, here, half)
                        : E::binary(ScalarOperator::equal,
                                    E::binary(ScalarOperator::modulo, here, two), E::integer(0));
  const E partnerPlace = isHalved ? E::select(isFirst, E::binary(ScalarOperator::add, here, half),
                                              E::binary(ScalarOperator::subtract, here, half))
                                  : E::binary(ScalarOperator::bitXor, here, E::integer(1));
  const E pair = E::binary(isHalved ? ScalarOperator::modulo : ScalarOperator::divide, here,
                           isHalved ? half : two);
  std::vector<E> places;
  for (int other = 0; other < rotary.rank; ++other)
    places.push_back(other == rotary.dimension ? partnerPlace : E::coordinate(other));
  const E x = E::operand(0), partner = E::element(0, places),
          minusPartner = E::unary(ScalarOperator::negate, partner);
  const E coordinate = E::coordinate(rotary.position),
          position = rotary.isPacked    ? E::binary(ScalarOperator::subtract, coordinate,
                                                    E::operand(1, ScalarType::i32))
                     : rotary.hasStarts ? fromStart(coordinate)
                                        : coordinate;
  const E turn =
      E::call(rotary.isShort ? DeviceFunctionId::shortRotation : DeviceFunctionId::rotation,
              {position, rotaryFrequency(rotary, pair)});
  const E rotated = E::binary(
      ScalarOperator::add, E::binary(ScalarOperator::multiply, x, E::member("cosine", turn)),
      E::binary(ScalarOperator::multiply,
                rotary.isReverse ? E::select(isFirst, partner, minusPartner)
                                 : E::select(isFirst, minusPartner, partner),
                E::member("sine", turn)));
  std::vector<E> conditions;
  if (rotary.turned < rotary.extent)
    conditions.push_back(E::binary(ScalarOperator::less, here, E::integer(rotary.turned)));
  if (rotary.among >= 0) {
    const E member = E::coordinate(rotary.among);
    if (rotary.begin > 0)
      conditions.push_back(
          E::binary(ScalarOperator::greaterEqual, member, E::integer(rotary.begin)));
    conditions.push_back(E::binary(ScalarOperator::less, member, E::integer(rotary.end)));
  }
  if (conditions.empty()) return rotated;
  E all = conditions.front();
  for (size_t next = 1; next < conditions.size(); ++next)
    all = E::binary(ScalarOperator::both, all, conditions[next]);
  return E::select(all, rotated, x);
}

bool hasShortRotations(const Expression &expression) {
  return std::ranges::any_of(expression.all(), [](const ExpressionNode &node) {
    return node.calls(DeviceFunctionId::shortRotation);
  });
}

namespace {

/// key - (query + shift).
E distanceOf(int key, int query, int64_t shift) {
  return E::binary(ScalarOperator::subtract, E::coordinate(key), sum(E::coordinate(query), shift));
}

/// The bucket of each number in [first, end) by comparisons of `at`: halves of the runs of equal
/// buckets, which begin at `starts`.
E bucketAt(const E &at, const std::vector<std::pair<int64_t, int64_t>> &runs, size_t first,
           size_t end) {
  if (first + 1 == end) return E::integer(runs[first].second);
  const size_t middle = first + (end - first) / 2;
  return E::select(E::binary(ScalarOperator::less, at, E::integer(runs[middle].first)),
                   bucketAt(at, runs, first, middle), bucketAt(at, runs, middle, end));
}

}  // namespace

Expression alibiExpression(const AlibiShape &alibi) {
  const E head = numberOf(alibi.heads, alibi.extents);
  int64_t count = 1;
  for (const int64_t extent : alibi.extents) count *= extent;
  const int64_t n = powerOfTwoUpTo(count);
  // Heads from n on stand between those before them.
  E place = sum(head, 1);
  if (n < count)
    place = E::select(E::binary(ScalarOperator::less, head, E::integer(n)),
                      E::binary(ScalarOperator::add, head, E::literal(1)),
                      E::binary(ScalarOperator::subtract, head, E::literal(double(n) - 0.5)));
  const E slope = E::call(DeviceFunctionId::exp,
                          {E::binary(ScalarOperator::multiply, place,
                                     E::literal(-alibi.steepness * std::log(2.0) / double(n)))});
  return E::binary(
      ScalarOperator::add, E::operand(0),
      E::binary(ScalarOperator::multiply, slope, distanceOf(alibi.key, alibi.query, alibi.shift)));
}

Expression relativeBiasExpression(const RelativeBiasShape &bias) {
  std::vector<E> places;
  for (const int dimension : bias.along) places.push_back(E::coordinate(dimension));
  const E distance = bias.isReverse ? E::binary(ScalarOperator::subtract,
                                                sum(E::coordinate(bias.query), bias.shift),
                                                E::coordinate(bias.key))
                                    : distanceOf(bias.key, bias.query, bias.shift);
  places.push_back(E::call(DeviceFunctionId::clampedIndex,
                           {sum(distance, bias.distance), E::integer(bias.distances)}));
  return E::binary(ScalarOperator::add, E::operand(0), E::element(1, places));
}

Expression expandBucketsExpression(const ExpandBucketsShape &table) {
  std::vector<std::pair<int64_t, int64_t>> runs;  // first place, bucket
  for (int64_t place = 0; place <= 2 * table.farthest; ++place)
    if (const int64_t bucket =
            relativeBucket(table.kind, table.buckets, table.farthest, place - table.farthest);
        runs.empty() || runs.back().second != bucket)
      runs.emplace_back(place, bucket);
  std::vector<E> places = {bucketAt(E::coordinate(table.rank - 1), runs, 0, runs.size())};
  for (int other = 0; other + 1 < table.rank; ++other) places.push_back(E::coordinate(other));
  return E::element(0, places);
}

}  // namespace weft
