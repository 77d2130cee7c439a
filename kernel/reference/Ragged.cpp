// Sequences of different lengths: offsets, and the token that an element of a packed or an unpacked
// tensor, or of a cache, is. Exact.
#include "kernel/Ragged.h"
#include "kernel/Append.h"

#include "kernel/reference/PointEvaluator.h"

#include <algorithm>

namespace weft::reference {

/// Of the second operand of pack and unpack.
int64_t PointEvaluator::offsetOf(const BodyOp &op, int64_t sequence) {
  Coordinates at(1);
  at[0] = sequence;
  return int64_t(operand(op, 1, at).value);
}

Point PointEvaluator::offsets(const BodyOp &op, size_t, const Coordinates &at) {
  Point sum;
  Coordinates from(1);
  for (from[0] = 0; from[0] < at[0]; ++from[0])
    sum.value += std::clamp(operand(op, 0, from).value, 0.0, double(integer(op, "bound")));
  return sum;
}

Point PointEvaluator::pack(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> axes = list(op, "axes");
  const size_t sequences = size_t(axes[0]), positions = size_t(axes[1]);
  Coordinates from = at.with(positions, 0);
  const std::optional<TokenPlace> place = placeOfToken(
      from[sequences], extent(op.operands[0], sequences), extent(op.operands[0], positions),
      [&](int64_t sequence) { return offsetOf(op, sequence); });
  if (!place) return {};
  from[sequences] = place->sequence, from[positions] = place->position;
  return operand(op, 0, from);
}

Point PointEvaluator::unpack(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> into = list(op, "into");
  const size_t sequences = size_t(into[0]), positions = size_t(into[1]),
               axis = size_t(integer(op, "axis"));
  const std::optional<int64_t> token =
      tokenAt(at[sequences], at[positions], extent(op.operands[0], axis),
              [&](int64_t sequence) { return offsetOf(op, sequence); });
  if (!token) return {.value = number(op, "fill", 0), .error = 0};
  const Coordinates rest =
      at.without(std::max(sequences, positions)).without(std::min(sequences, positions));
  return operand(op, 0, rest.with(axis, *token));
}

/// Where no token stands, what the cache held: the memory of both is one, so that it may be read
/// after the kernel as well as before.
Point PointEvaluator::append(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = appendAxis(op);
  Coordinates sequence(1);
  sequence[0] = at[size_t(list(op, "along").at(0))];
  const int64_t position = at[axis] - int64_t(operand(op, appendStarts, sequence).value);
  if (position < 0 || position >= extent(op.operands[appendedTokens], axis))
    return operand(op, appendedCache, at);
  Coordinates token = at;
  token[axis] = position;
  return operand(op, appendedTokens, token);
}

}  // namespace weft::reference
