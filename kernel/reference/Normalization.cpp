// Softmax, norms, reductions and the parts of a decomposed softmax. Statistics of a row are
// computed once and kept. A NaN makes its whole row NaN; a row of -inf alone gives zeros.
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/ReduceKind.h"
#include "kernel/reference/PointEvaluator.h"

#include <cmath>
#include <limits>

namespace weft::reference {
namespace {

/// Below this, fp32 loses relative precision (subnormals) and may flush to zero.
constexpr double smallestNormal = 0x1p-126;

/// The larger; NaN if either is NaN.
Point larger(const Point &a, const Point &b) {
  const double error = std::max(a.error, b.error);
  return {.value = std::isnan(a.value) || a.value > b.value ? a.value : b.value, .error = error};
}

Point quotient(const Point &a, const Point &b) {
  const double value = a.value / b.value, magnitude = std::abs(value), divisor = std::abs(b.value);
  return {
      .value = value,
      .error = (a.error + magnitude * b.error) / (divisor - b.error) + 4 * roundoff * magnitude};
}

Point inverseRoot(const Point &x, double epsilon) {
  const double value = 1 / std::sqrt(x.value + epsilon);
  const double moved = 1 / std::sqrt(std::max(0.0, x.value - x.error) + epsilon);
  return {.value = value, .error = moved - value + 6 * roundoff * value};
}

}  // namespace

/// exp(x - maximum); zero where the whole row is -inf.
Point PointEvaluator::exponential(const Point &x, const Point &maximum) const {
  if (maximum.value == minusInfinity) return {};
  const double value = std::exp(x.value - maximum.value);
  if (value == 0) return {.value = 0, .error = smallestNormal};
  const double relative = x.error + 2 * roundoff * std::abs(x.value - maximum.value) + 4 * roundoff;
  return {.value = value, .error = value * std::expm1(relative) + smallestNormal};
}

/// exp(x - logSum); zero where the row saw nothing. A kernel may compute it as 2^(x log2(e) -
/// logSum log2(e)), whose products are rounded, too.
Point PointEvaluator::softmaxFromLogSums(const BodyOp &op, size_t, const Coordinates &at) {
  const Point x = evaluate(op.operands[0], mapped(op, 0, at)),
              logSum = evaluate(op.operands[1], mapped(op, 1, at));
  if (logSum.value == minusInfinity) return {};
  const double value = std::exp(x.value - logSum.value);
  if (value == 0 || !std::isfinite(value)) return {.value = value, .error = smallestNormal};
  const double relative =
      x.error + logSum.error + 4 * roundoff +
      2 * roundoff * (std::abs(x.value - logSum.value) + std::abs(logSum.value));
  return {.value = value, .error = value * std::expm1(relative) + smallestNormal};
}

PointEvaluator::Row PointEvaluator::exponentials(const BodyOp &op, Coordinates at, size_t dimension,
                                                 int64_t begin, int64_t end, int weight) {
  std::vector<Point> elements;
  Row result{.first = {.value = minusInfinity, .error = 0}, .second = {}};
  for (at[dimension] = begin; at[dimension] < end; ++at[dimension]) {
    elements.push_back(operand(op, 0, at));
    result.first = larger(result.first, elements.back());
  }
  at[dimension] = begin;
  double magnitude = 0;
  for (const Point &x : elements) {
    Point term = exponential(x, result.first);
    if (weight >= 0) {
      const Point factor = operand(op, size_t(weight), at);
      term = {.value = term.value * factor.value,
              .error = term.error * std::abs(factor.value) + term.value * factor.error};
    }
    result.second.value += term.value;
    result.second.error += term.error;
    magnitude += std::abs(term.value);
    ++at[dimension];
  }
  result.second.error += sumError(end - begin) * magnitude;
  return result;
}

Point PointEvaluator::softmax(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const Row &all = row(op, at.without(axis), [&] {
    return exponentials(op, at, axis, 0, extent(op.operands[0], axis), -1);
  });
  if (all.first.value == minusInfinity) return {};
  return quotient(exponential(operand(op, 0, at), all.first), all.second);
}

Point PointEvaluator::layerNorm(const BodyOp &op, size_t result, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const int64_t count = extent(op.operands[0], axis);
  const Coordinates key = result == 0 ? at.without(axis) : at;
  const Row &statistics = row(op, key, [&] {
    std::vector<Point> elements;
    Point mean;
    double magnitude = 0;
    for (int64_t n = 0; n < count; ++n) {
      elements.push_back(operand(op, 0, key.with(axis, n)));
      mean.value += elements.back().value / double(count);
      mean.error += elements.back().error / double(count);
      magnitude += std::abs(elements.back().value) / double(count);
    }
    mean.error += (sumError(count) + 2 * roundoff) * magnitude;
    Point variance;
    for (const Point &x : elements) {
      const double difference = std::abs(x.value - mean.value);
      const double error = x.error + mean.error + roundoff * difference;
      variance.value += difference * difference / double(count);
      variance.error += (2 * difference * error + error * error) / double(count);
    }
    variance.error += (sumError(count) + 4 * roundoff) * variance.value;
    return Row{.first = mean,
               .second = inverseRoot(variance, attributeOr(op, attribute::epsilon, 1e-5))};
  });
  if (result == 1) return statistics.first;
  if (result == 2) return statistics.second;
  const int64_t along[] = {at[axis]};
  const Coordinates position{std::span<const int64_t>(along)};
  const Point x = operand(op, 0, at), gamma = operand(op, 1, position),
              beta = op.operands.size() > 2 ? operand(op, 2, position) : Point();
  const double difference = x.value - statistics.first.value, scale = statistics.second.value;
  const double value = difference * scale * gamma.value + beta.value;
  const double magnitude = std::abs(difference * scale * gamma.value);
  const double error = (x.error + statistics.first.error) * scale * std::abs(gamma.value) +
                       std::abs(difference) * statistics.second.error * std::abs(gamma.value) +
                       std::abs(difference * scale) * gamma.error + beta.error;
  return {.value = value,
          .error = error + 6 * roundoff * magnitude + 2 * roundoff * std::abs(value)};
}

Point PointEvaluator::rmsNorm(const BodyOp &op, size_t result, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const int64_t count = extent(op.operands[0], axis);
  const Coordinates key = result == 0 ? at.without(axis) : at;
  const Row &statistics = row(op, key, [&] {
    Point squares;
    for (int64_t n = 0; n < count; ++n) {
      const Point x = operand(op, 0, key.with(axis, n));
      squares.value += x.value * x.value / double(count);
      squares.error += (2 * std::abs(x.value) * x.error + x.error * x.error) / double(count);
    }
    squares.error += (sumError(count) + 4 * roundoff) * squares.value;
    return Row{.first = {},
               .second = inverseRoot(squares, attributeOr(op, attribute::epsilon, 1e-5))};
  });
  if (result == 1) return statistics.second;
  const int64_t along[] = {at[axis]};
  const Point x = operand(op, 0, at),
              gamma = operand(op, 1, Coordinates(std::span<const int64_t>(along)));
  const double scale = statistics.second.value, value = x.value * scale * gamma.value;
  return {.value = value,
          .error = x.error * scale * std::abs(gamma.value) +
                   std::abs(x.value * gamma.value) * statistics.second.error +
                   std::abs(x.value * scale) * gamma.error + 4 * roundoff * std::abs(value)};
}

Point PointEvaluator::reduce(const BodyOp &op, size_t, const Coordinates &at) {
  const std::optional<ReduceKind> kind = reduceKind(op);
  if (!kind)
    throw Error::unsupported("kernel '{}': reduce of kind '{}' has no reference evaluation",
                             kernel.name, attributeOf(op, attribute::kind));
  return row(op, at,
             [&] {
               Coordinates from(rank(op.operands[0]));
               std::vector<bool> isReduced(from.size());
               int64_t count = 1;
               for (int64_t axis : attributeOf(op, attribute::axes)) {
                 isReduced[size_t(axis)] = true;
                 count *= extent(op.operands[0], size_t(axis));
               }
               for (size_t d = 0, kept = 0; d < from.size(); ++d)
                 if (!isReduced[d]) from[d] = at[kept++];
               Point result{.value = kind == ReduceKind::sum ? 0 : minusInfinity, .error = 0};
               double magnitude = 0;
               for (int64_t n = 0; n < count; ++n) {
                 int64_t rest = n;
                 for (size_t d = from.size(); d-- > 0;) {
                   if (!isReduced[d]) continue;
                   from[d] = rest % extent(op.operands[0], d);
                   rest /= extent(op.operands[0], d);
                 }
                 const Point x = operand(op, 0, from);
                 if (kind == ReduceKind::maximum) {
                   result = larger(result, x);
                   continue;
                 }
                 result.value += x.value;
                 result.error += x.error;
                 magnitude += std::abs(x.value);
               }
               if (kind == ReduceKind::sum && std::isfinite(magnitude))
                 result.error += sumError(count) * magnitude;
               return Row{.first = result, .second = {}};
             })
      .first;
}

/// Section 3.2 of the paper on softmax recomposition: x' = exp(x - m'), m' and d' of each
/// sub-vector.
Point PointEvaluator::localSoftmax(const BodyOp &op, size_t result, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const int64_t tile = attributeOf(op, attribute::tile);
  Coordinates subVector = at;
  if (result == 0) subVector[axis] = at[axis] / tile;
  const Row &statistics = row(op, subVector, [&] {
    const int64_t begin = subVector[axis] * tile,
                  end = std::min(begin + tile, extent(op.operands[0], axis));
    return exponentials(op, subVector, axis, begin, end, -1);
  });
  if (result == 1) return statistics.first;
  // The maximum is off by its error where the elements are, so that single exponentials are, too.
  const double shifted = std::expm1(statistics.first.error);
  Point value = result == 2 ? statistics.second : exponential(operand(op, 0, at), statistics.first);
  value.error += value.value * shifted;
  return value;
}

/// r' = exp(m' - m) / sum of exp(m' - m) d'.
Point PointEvaluator::reduceSubvectors(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const Row &all = row(op, at.without(axis), [&] {
    return exponentials(op, at, axis, 0, extent(op.operands[0], axis), 1);
  });
  if (all.first.value == minusInfinity) return {};
  return quotient(exponential(operand(op, 0, at), all.first), all.second);
}

Point PointEvaluator::globalScaling(const BodyOp &op, size_t, const Coordinates &at) {
  Coordinates subVector = at;
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  subVector[axis] /= attributeOf(op, attribute::tile);
  const Point x = operand(op, 0, at), factor = operand(op, 1, subVector);
  const double value = x.value * factor.value;
  return {.value = value,
          .error = x.error * std::abs(factor.value) + factor.error * std::abs(x.value) +
                   2 * roundoff * std::abs(value)};
}

}  // namespace weft::reference
