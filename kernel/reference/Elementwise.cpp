// Maps: by the scalar meaning of the op's record, or by coordinates (dropout, masks, rotary
// embeddings).
#include "kernel/Attributes.h"
#include "kernel/BlockMask.h"
#include "kernel/ChunkOrigins.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/MaskKind.h"
#include "kernel/RotaryStyle.h"
#include "kernel/ShortFunction.h"
#include "kernel/reference/PointEvaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace weft::reference {
namespace {

/// Device functions are a few ulp off and round their arguments on the way; +, -, *, / round once.
constexpr double functionUlps = 8, arithmeticUlps = 4;

/// What they compute on the way may be flushed to zero below this, the least normal number of fp32,
/// before an operand multiplies it.
constexpr double flushed = 0x1p-126;

}  // namespace

/// Errors are propagated by moving each operand by its error, which holds for functions of any
/// slope.
Point PointEvaluator::scalar(const BodyOp &op, size_t, const Coordinates &at) {
  const Definition &meaning = definition(op);
  const auto attribute = [&](const char *name) {
    return op.attributes.contains(name) ? numberNamed(op, name)
                                        : std::numeric_limits<double>::quiet_NaN();
  };
  const bool isFunction = op.expression.callsFunction();
  const bool isCompound = op.expression.roundsOnTheWay();
  std::array<double, mostScalarOperands> values = {}, errors = {};
  for (size_t n = 0; n < op.operands.size(); ++n) {
    const Point operand = evaluate(op.operands[n], mapped(op, n, at));
    values[n] = operand.value;
    const double ulps = isFunction ? functionUlps : isCompound ? arithmeticUlps : 0;
    errors[n] = operand.error + ulps * roundoff * std::abs(operand.value);
  }
  const std::span<const double> operands(values.data(), op.operands.size());
  const auto function = [&] { return meaning.scalar(operands, attribute); };
  Point result{.value = function(), .error = 0};
  if (!std::isfinite(result.value)) return result;
  result.error = (isFunction ? functionUlps : arithmeticUlps) * roundoff * std::abs(result.value);
  if (isFunction) {
    double lost = flushed;
    for (size_t n = 0; n < op.operands.size(); ++n) lost *= std::max(1.0, std::abs(values[n]));
    result.error += lost;
  }
  for (size_t n = 0; n < op.operands.size(); ++n) {
    if (errors[n] == 0 || !std::isfinite(errors[n])) continue;
    const double exact = values[n];
    double moved = 0;
    for (double sign : {-1.0, 1.0}) {
      values[n] = exact + sign * errors[n];
      moved = std::max(moved, std::abs(function() - result.value));
    }
    values[n] = exact;
    result.error += moved;
  }
  if (meaning.isShort) {
    const bool isSlope = op.operands.size() > 1;
    const double factor = isSlope ? values[0] : 1,
                 value = result.value / (factor == 0 ? 1 : factor);
    result.error += std::abs(factor) * shortError(kernel.values[size_t(op.results[0])].dtype, value,
                                                  isSlope ? values[1] : 0);
  }
  return result;
}

bool PointEvaluator::keeps(const BodyOp &op, const Dropout &dropout, const Coordinates &at) const {
  const ValueId value = op.operands[0];
  const size_t dimensions = rank(value);
  const int64_t column = dimensions > 0 ? at[dimensions - 1] : 0,
                row = dimensions > 1 ? at[dimensions - 2] : 0;
  int64_t outer = 0;
  for (size_t d = 0; d + 2 < dimensions; ++d) outer = outer * extent(value, d) + at[d];
  if (hasAttribute(op, attribute::outer))
    outer += attributeOf(op, attribute::outer);  // part of an outer axis
  const DropoutSource own{
      .seed = source.seed, .step = source.step, .stream = uint32_t(dropout.stream)};
  return dropoutDraw(own, outer, row, column) >= dropoutThreshold(dropout.p);
}

Point PointEvaluator::dropout(const BodyOp &op, size_t, const Coordinates &at) {
  const std::optional<Dropout> dropout = dropoutOf(op);
  if (!dropout)
    throw Error::checkFailed("kernel '{}': op '{}' lacks 'p' or 'stream'", kernel.name,
                             nameOf(op.kind));
  const Coordinates place = mapped(op, 0, at);
  if (!keeps(op, *dropout, place)) return {};
  const Point x = evaluate(op.operands[0], place);
  const double scale = dropoutScale(dropout->p);
  return {.value = x.value * scale, .error = (x.error + 4 * roundoff * std::abs(x.value)) * scale};
}

int64_t PointEvaluator::startOf(const BodyOp &op, const Coordinates &at) {
  return op.operands.size() < 2 ? 0 : int64_t(evaluate(op.operands[1], mapped(op, 1, at)).value);
}

const PointEvaluator::Mask &PointEvaluator::maskOf(const BodyOp &op) {
  std::optional<Mask> &known = definitions[size_t(op.results[0])].mask;
  if (known) return *known;
  const std::optional<MaskShape::Kind> kind = maskKind(op);
  if (!kind)
    throw Error::unsupported("kernel '{}': mask of kind '{}' has no reference evaluation",
                             kernel.name, attributeOf(op, attribute::kind));
  Mask made{.kind = *kind,
            .key = size_t(attributeOf(op, attribute::key)),
            .fill = attributeOr(op, attribute::fill, minusInfinity)};
  made.keys = extentOfWhole(kernel, op, made.key);
  if (hasAttribute(op, attribute::query)) {
    made.query = size_t(attributeOf(op, attribute::query));
    made.queries = extentOfWhole(kernel, op, *made.query);
  }
  for (size_t dimension = 0; dimension < rank(op.results[0]); ++dimension)
    made.origins.push_back(placeInWhole(op, dimension, 0));
  return known.emplace(std::move(made));
}

/// Excluded elements are -inf, or `fill`. Queries are aligned to the end of the keys, or stand from
/// the start of their sequence on.
Point PointEvaluator::mask(const BodyOp &op, size_t, const Coordinates &at) {
  const Mask &mask = maskOf(op);
  const auto place = [&](size_t dimension) { return at[dimension] + mask.origins[dimension]; };
  const int64_t key = place(mask.key);
  const auto query = [&] { return place(mask.query.value()); };
  // Of a key from the query, if the last query stands at the last key.
  const auto distance = [&] {
    if (mask.kind != MaskShape::Kind::document && op.operands.size() > 1)
      return key - (query() + startOf(op, at));
    return key - (query() + mask.keys - mask.queries);
  };
  const auto isVisible = [&] {
    switch (mask.kind) {
      case MaskShape::Kind::causal: return distance() <= 0;
      case MaskShape::Kind::window:
        if (hasAttribute(op, attribute::global) &&
            std::min(key, key - distance()) < attributeOf(op, attribute::global))
          return true;
        return distance() >= -attributeOf(op, attribute::left) &&
               distance() <= attributeOf(op, attribute::right);
      case MaskShape::Kind::padding:
        return double(key) < evaluate(op.operands[1], mapped(op, 1, at)).value;
      case MaskShape::Kind::tokens:
      case MaskShape::Kind::unread: {
        const int64_t last[] = {extent(op.operands[1], 0) - 1};
        return double(key) < evaluate(op.operands[1], Coordinates(std::span(last))).value;
      }
      case MaskShape::Kind::block: {
        const int64_t size = attributeOf(op, attribute::size);
        const int64_t block[] = {query() / size, key / size};
        return evaluate(op.operands[1], Coordinates(std::span(block))).value != 0;
      }
      case MaskShape::Kind::pattern: {
        const BlockTable *&table = blockTables[&op];
        if (!table) table = blockTableOf(kernel, op);
        int64_t head = 0;
        if (hasAttribute(op, attribute::along))
          for (const int64_t dimension : attributeOf(op, attribute::along))
            head = head * extentOfWhole(kernel, op, size_t(dimension)) + place(size_t(dimension));
        return table->sees(head, query(), key);
      }
      case MaskShape::Kind::document: {
        const int64_t batch = at[size_t(attributeOf(op, attribute::along).at(0))];
        const int64_t own[] = {batch, key - distance()}, other[] = {batch, key};
        return evaluate(op.operands[1], Coordinates(std::span(own))).value ==
               evaluate(op.operands[1], Coordinates(std::span(other))).value;
      }
    }
    return false;
  };
  if (isVisible()) return evaluate(op.operands[0], mapped(op, 0, at));
  if (mask.kind == MaskShape::Kind::unread) return {.value = std::nan(""), .error = 0};
  return {.value = mask.fill, .error = 0};
}

Point PointEvaluator::rotary(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t dimension = size_t(attributeOf(op, attribute::dim));
  const int64_t size = hasAttribute(op, attribute::turned) ? attributeOf(op, attribute::turned)
                                                           : extent(op.results[0], dimension);
  const int64_t half = size / 2, here = at[dimension];
  if (here >= size) return operand(op, 0, at);
  if (hasAttribute(op, attribute::among)) {
    const int64_t member = at[size_t(attributeOf(op, attribute::among))];
    if (member < attributeOf(op, attribute::begin) || member >= attributeOf(op, attribute::end))
      return operand(op, 0, at);
  }
  const bool halved = rotaryStyleOf(op) == RotaryStyle::halved;
  const bool isSecond = halved ? here >= half : here % 2 == 1;
  const int64_t pair = halved ? here % half : here / 2;
  Coordinates partner = at;
  partner[dimension] = halved ? (isSecond ? here - half : here + half) : here ^ 1;
  const double base = attributeOr(op, attribute::base, 10000.0);
  const auto dimensionOfPositions = size_t(attributeOf(op, attribute::position));
  // Starts along positions are those of packed tokens.
  const bool isPacked = op.operands.size() > 1 &&
                        size_t(attributeOf(op, attribute::along).at(0)) == dimensionOfPositions;
  const int64_t start = startOf(op, at);
  const auto position = double(placeInWhole(op, dimensionOfPositions, at[dimensionOfPositions]) +
                               (isPacked ? -start : start));
  const double frequency = std::pow(base, -2.0 * double(pair) / double(size)),
               slowed = frequency / attributeOr(op, attribute::factor, 1.0);
  double angle = position * slowed, amplified = 1;
  if (hasAttribute(op, attribute::original)) {
    // Turns in the positions of the first training, by Llama 3.1's definition.
    const double turns = double(attributeOf(op, attribute::original)) * frequency /
                         (2 * std::acos(-1.0)),
                 low = attributeOr(op, attribute::low, 0),
                 high = attributeOr(op, attribute::high, 0),
                 kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    angle = position * (kept * frequency + (1 - kept) * slowed);
    amplified += high / (high - low);
  }
  const Point own = operand(op, 0, at), other = operand(op, 0, partner);
  const double cosine = std::cos(angle);
  const double sine = hasAttribute(op, attribute::direction) ? -std::sin(angle) : std::sin(angle);
  // The frequency is rounded to fp32, which turns by a part of the angle; its exponent loses as
  // much again.
  const double turn =
      16 * roundoff * (1 + std::abs(std::log2(base))) * amplified *
          std::max(std::abs(angle), std::abs(position) * std::min(frequency, slowed)) +
      (hasShortRotations(op.expression) ? 0x1p-19 : 4 * roundoff);
  return {.value = own.value * cosine + (isSecond ? other.value : -other.value) * sine,
          .error = own.error + other.error +
                   (std::abs(own.value) + std::abs(other.value)) * (turn + 2 * roundoff)};
}

}  // namespace weft::reference
