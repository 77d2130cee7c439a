// Sequences of different lengths: offsets, and the token that an element of a packed or an unpacked
// tensor, or of a cache, is. Exact.
#include "kernel/Ragged.h"
#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/UnusedTokens.h"

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
    sum.value +=
        std::clamp(operand(op, 0, from).value, 0.0, double(attributeOf(op, attribute::bound)));
  return sum;
}

Point PointEvaluator::lengths(const BodyOp &op, size_t, const Coordinates &at) {
  Point sum;
  Coordinates from = at.with(1, 0);
  for (from[1] = 0; from[1] < extent(op.operands[0], 1); ++from[1])
    sum.value += operand(op, 0, from).value != 0 ? 1 : 0;
  return sum;
}

Point PointEvaluator::pack(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> axes = attributeOf(op, attribute::axes);
  const size_t sequences = size_t(axes[0]), positions = size_t(axes[1]);
  Coordinates from = at.with(positions, 0);
  const std::optional<TokenPlace> place = placeOfToken(
      from[sequences], extent(op.operands[0], sequences), extent(op.operands[0], positions),
      [&](int64_t sequence) { return offsetOf(op, sequence); });
  if (!place) return {.isSpecified = !isUnreadPack(op)};
  from[sequences] = place->sequence, from[positions] = place->position;
  return operand(op, 0, from);
}

Point PointEvaluator::unpack(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> into = attributeOf(op, attribute::into);
  const size_t sequences = size_t(into[0]), positions = size_t(into[1]),
               axis = size_t(attributeOf(op, attribute::axis));
  const std::optional<int64_t> token =
      tokenAt(at[sequences], at[positions], extent(op.operands[0], axis),
              [&](int64_t sequence) { return offsetOf(op, sequence); });
  if (!token) return {.value = attributeOr(op, attribute::fill, 0), .error = 0};
  const Coordinates rest =
      at.without(std::max(sequences, positions)).without(std::min(sequences, positions));
  return operand(op, 0, rest.with(axis, *token));
}

/// Where no token stands, what the cache held: the memory of both is one, so that it may be read
/// after the kernel as well as before.
Point PointEvaluator::append(const BodyOp &op, size_t, const Coordinates &at) {
  if (isPaged(op)) return appendToPages(op, at);
  const size_t axis = appendAxis(op);
  Coordinates sequence(1);
  sequence[0] = at[appendAlong(op)];
  const int64_t position = at[axis] - int64_t(operand(op, appendStarts, sequence).value);
  if (position < 0 || position >= extent(op.operands[appendedTokens], axis))
    return operand(op, appendedCache, at);
  Coordinates token = at;
  token[axis] = position;
  return operand(op, appendedTokens, token);
}

/// The token whose place in the pages this is, among those of all sequences; the last one of
/// several, as the interpreter has it.
Point PointEvaluator::appendToPages(const BodyOp &op, const Coordinates &at) {
  const size_t axis = appendAxis(op), along = appendAlong(op);
  const int64_t size = extent(op.operands[appendedCache], axis),
                sequences = extent(op.operands[appendTable], 0),
                entries = extent(op.operands[appendTable], 1),
                tokens = extent(op.operands[appendedTokens], axis);
  for (int64_t sequence = sequences; sequence-- > 0;) {
    Coordinates one(1);
    one[0] = sequence;
    const auto start = int64_t(operand(op, appendStarts, one).value);
    for (int64_t token = tokens; token-- > 0;) {
      const int64_t position = start + token;
      if (position < 0 || position >= entries * size || position % size != at[axis]) continue;
      Coordinates entry(2);
      entry[0] = sequence, entry[1] = position / size;
      if (int64_t(operand(op, appendTable, entry).value) != at[along]) continue;
      Coordinates from = at;
      from[along] = sequence, from[axis] = token;
      return operand(op, appendedTokens, from);
    }
  }
  return operand(op, appendedCache, at);
}

Point PointEvaluator::gatherPages(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis)),
               along = size_t(attributeOf(op, attribute::along).at(0));
  const int64_t size = extent(op.operands[0], axis);
  Coordinates entry(2);
  entry[0] = at[along], entry[1] = at[axis] / size;
  const auto page = int64_t(operand(op, 1, entry).value);
  if (page < 0 || page >= extent(op.operands[0], along)) return {};
  Coordinates from = at;
  from[along] = page, from[axis] = at[axis] % size;
  return operand(op, 0, from);
}

}  // namespace weft::reference
