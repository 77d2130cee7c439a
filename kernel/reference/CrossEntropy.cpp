// Cross entropy and its gradient, from SPEC.md's definitions.
#include "kernel/Attributes.h"
#include "kernel/reference/PointEvaluator.h"

#include <cmath>

namespace weft::reference {

Point PointEvaluator::logSum(const Row &all) {
  const double logarithm = std::log(all.second.value);
  return {.value = all.first.value + logarithm,
          .error = all.first.error + all.second.error / (all.second.value - all.second.error) +
                   4 * roundoff * (std::abs(logarithm) + std::abs(all.first.value))};
}

/// log(sum(exp(x))) - x[label] (result 0), or the logarithm alone (result 1).
Point PointEvaluator::crossEntropy(const BodyOp &op, size_t result, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const int64_t classes = extent(op.operands[0], axis);
  const Row &all =
      row(op, at, [&] { return exponentials(op, at.with(axis, 0), axis, 0, classes, -1); });
  const Point logSum = PointEvaluator::logSum(all);
  if (result == 1) return logSum;
  const int64_t label = int64_t(operand(op, 1, at).value);
  if (label < 0 || label >= classes) return {};
  const Point chosen = operand(op, 0, at.with(axis, label));
  return {.value = logSum.value - chosen.value,
          .error = logSum.error + chosen.error +
                   roundoff * (std::abs(logSum.value) + std::abs(chosen.value))};
}

/// dy * (exp(x - logSum) - [label]).
Point PointEvaluator::crossEntropyDx(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const Coordinates rowPlace = at.without(axis);
  const int64_t label = int64_t(operand(op, 1, rowPlace).value);
  if (label < 0 || label >= extent(op.operands[0], axis)) return {};
  const Point x = operand(op, 0, at), logSum = operand(op, 2, rowPlace),
              dy = operand(op, 3, rowPlace);
  const double probability = std::exp(x.value - logSum.value),
               slope = probability - (at[axis] == label ? 1 : 0);
  const double relative =
      x.error + logSum.error + 2 * roundoff * std::abs(x.value - logSum.value) + 4 * roundoff;
  const double slopeError =
      probability * std::expm1(relative) + 0x1p-126 + roundoff * std::abs(slope);
  return {.value = dy.value * slope,
          .error = dy.error * (std::abs(slope) + slopeError) +
                   std::abs(dy.value) * (slopeError + roundoff * std::abs(slope))};
}

}  // namespace weft::reference
