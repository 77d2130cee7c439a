// Movement: the element of a result is an element of an operand at other coordinates. Exact.
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/TileBounds.h"
#include "kernel/reference/PointEvaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::reference {

/// One value everywhere; a table of several is not part of a kernel.
Point PointEvaluator::constant(const BodyOp &op, size_t, const Coordinates &) {
  return {.value = hasAttribute(op, attribute::value) ? numberNamed(op, attribute::value.word)
                                                      : std::numeric_limits<double>::quiet_NaN()};
}

Point PointEvaluator::identity(const BodyOp &op, size_t, const Coordinates &at) {
  return operand(op, 0, at);
}

Point PointEvaluator::transpose(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> permutation = attributeOf(op, attribute::permutation);
  Coordinates from(at.size());
  for (size_t d = 0; d < at.size(); ++d) from[size_t(permutation[d])] = at[d];
  return operand(op, 0, from);
}

Point PointEvaluator::slice(const BodyOp &op, size_t, const Coordinates &at) {
  Coordinates from = at;
  from[size_t(attributeOf(op, attribute::axis))] += attributeOf(op, attribute::start);
  return operand(op, 0, from);
}

Point PointEvaluator::concat(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  Coordinates from = at;
  for (size_t part = 0; part < op.operands.size(); ++part) {
    const int64_t size = extent(op.operands[part], axis);
    if (from[axis] < size) return operand(op, part, from);
    from[axis] -= size;
  }
  throw Error::checkFailed("kernel '{}': the parts of a concat are shorter than its result",
                           kernel.name);
}

Point PointEvaluator::splitAxis(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis)),
               parts = attributeOf(op, attribute::sizes).size();
  Coordinates from(at.size() - parts + 1);
  for (size_t d = 0; d < from.size(); ++d) from[d] = d < axis ? at[d] : at[d + parts - 1];
  from[axis] = 0;
  for (size_t part = 0; part < parts; ++part)
    from[axis] = from[axis] * extent(op.results[0], axis + part) + at[axis + part];
  return operand(op, 0, from);
}

Point PointEvaluator::mergeAxes(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis)),
               parts = size_t(attributeOf(op, attribute::count));
  Coordinates from(at.size() + parts - 1);
  for (size_t d = 0; d < from.size(); ++d)
    from[d] = d < axis ? at[d] : d >= axis + parts ? at[d - parts + 1] : 0;
  int64_t rest = at[axis];
  for (size_t part = parts; part-- > 0; rest /= extent(op.operands[0], axis + part))
    from[axis + part] = rest % extent(op.operands[0], axis + part);
  return operand(op, 0, from);
}

Point PointEvaluator::gather(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t indexRank = rank(op.operands[1]);
  Coordinates index(indexRank), from(rank(op.operands[0]));
  for (size_t d = 0; d < indexRank; ++d) index[d] = at[d];
  for (size_t d = 1; d < from.size(); ++d) from[d] = at[indexRank + d - 1];
  from[0] = int64_t(operand(op, 1, index).value);
  const bool inside = from[0] >= 0 && from[0] < extent(op.operands[0], 0);
  if (!inside) return {.value = std::numeric_limits<double>::quiet_NaN(), .error = 0};
  return operand(op, 0, from);
}

Point PointEvaluator::tileBounds(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t last = at.size() - 2;
  Coordinates from(last + 1);
  for (size_t d = 0; d < last; ++d) from[d] = at[d];
  from[last] = at[last] * boundedTile;
  const int64_t end = std::min(from[last] + boundedTile, extent(op.operands[0], last));
  Point bound = operand(op, 0, from);
  for (++from[last]; from[last] < end; ++from[last]) {
    const Point next = operand(op, 0, from);
    if ((next.value < bound.value) == (at[last + 1] == 0)) bound = next;
  }
  return bound;
}

Point PointEvaluator::pad(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  Coordinates from = at;
  from[axis] -= attributeOf(op, attribute::start);
  if (from[axis] < 0 || from[axis] >= extent(op.operands[0], axis)) return {};
  return operand(op, 0, from);
}

Point PointEvaluator::broadcast(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> into = attributeOf(op, attribute::into);
  Coordinates from(into.size());
  for (size_t d = 0; d < into.size(); ++d) from[d] = at[size_t(into[d])];
  return operand(op, 0, from);
}

Point PointEvaluator::scatterAdd(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t indexRank = rank(op.operands[1]);
  Coordinates index(indexRank), from(rank(op.operands[0]));
  for (size_t d = 1; d < at.size(); ++d) from[indexRank + d - 1] = at[d];
  int64_t count = 1, terms = 0;
  for (size_t d = 0; d < indexRank; ++d) count *= extent(op.operands[1], d);
  Point sum;
  double magnitude = 0;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t d = indexRank; d-- > 0;) {
      index[d] = from[d] = rest % extent(op.operands[1], d);
      rest /= extent(op.operands[1], d);
    }
    if (int64_t(operand(op, 1, index).value) != at[0]) continue;
    const Point term = operand(op, 0, from);
    sum.value += term.value;
    sum.error += term.error;
    magnitude += std::abs(term.value);
    ++terms;
  }
  sum.error += terms > 1 ? sumError(terms) * magnitude : 0;
  return sum;
}

}  // namespace weft::reference
