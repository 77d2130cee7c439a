// Movement: the element of a result is an element of an operand at other coordinates. Exact.
#include "kernel/Error.h"
#include "kernel/reference/PointEvaluator.h"

#include <limits>

namespace weft::reference {

Point PointEvaluator::identity(const BodyOp &op, size_t, const Coordinates &at) { return operand(op, 0, at); }

Point PointEvaluator::transpose(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> permutation = list(op, "permutation");
  Coordinates from(at.size());
  for (size_t d = 0; d < at.size(); ++d) from[size_t(permutation[d])] = at[d];
  return operand(op, 0, from);
}

Point PointEvaluator::slice(const BodyOp &op, size_t, const Coordinates &at) {
  Coordinates from = at;
  from[size_t(integer(op, "axis"))] += integer(op, "start");
  return operand(op, 0, from);
}

Point PointEvaluator::concat(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(integer(op, "axis"));
  Coordinates from = at;
  for (size_t part = 0; part < op.operands.size(); ++part) {
    const int64_t size = extent(op.operands[part], axis);
    if (from[axis] < size) return operand(op, part, from);
    from[axis] -= size;
  }
  throw Error::checkFailed("kernel '{}': the parts of a concat are shorter than its result", kernel.name);
}

Point PointEvaluator::splitAxis(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(integer(op, "axis")), parts = list(op, "sizes").size();
  Coordinates from(at.size() - parts + 1);
  for (size_t d = 0; d < from.size(); ++d) from[d] = d < axis ? at[d] : at[d + parts - 1];
  from[axis] = 0;
  for (size_t part = 0; part < parts; ++part)
    from[axis] = from[axis] * extent(op.results[0], axis + part) + at[axis + part];
  return operand(op, 0, from);
}

Point PointEvaluator::mergeAxes(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(integer(op, "axis")), parts = size_t(integer(op, "count"));
  Coordinates from(at.size() + parts - 1);
  for (size_t d = 0; d < from.size(); ++d) from[d] = d < axis ? at[d] : d >= axis + parts ? at[d - parts + 1] : 0;
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

}  // namespace weft::reference
