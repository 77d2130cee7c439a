// Biases of attention scores by the distance of key and query, and tables of them.
#include "kernel/Attributes.h"
#include "kernel/ChunkOrigins.h"
#include "kernel/Error.h"
#include "kernel/ScoreBias.h"
#include "kernel/reference/PointEvaluator.h"

#include <algorithm>
#include <cmath>

namespace weft::reference {

int64_t PointEvaluator::distance(const BodyOp &op, const Coordinates &at) const {
  const auto key = size_t(attributeOf(op, attribute::key)),
             query = size_t(attributeOf(op, attribute::query));
  return placeInWhole(op, key, at[key]) -
         (placeInWhole(op, query, at[query]) + extentOfWhole(kernel, op, key) -
          extentOfWhole(kernel, op, query));
}

Point PointEvaluator::alibi(const BodyOp &op, size_t, const Coordinates &at) {
  int64_t head = 0, heads = 1;
  for (const int64_t dimension : attributeOf(op, attribute::heads)) {
    const int64_t count = extentOfWhole(kernel, op, size_t(dimension));
    head = head * count + placeInWhole(op, size_t(dimension), at[size_t(dimension)]);
    heads *= count;
  }
  const double bias =
      alibiSlope(head, heads, attributeOr(op, attribute::steepness, 8)) * double(distance(op, at));
  const Point x = operand(op, 0, at);
  // The exponent is a rounded product of at most `steepness`, which its exponential multiplies.
  const double slope = (8 + 4 * attributeOr(op, attribute::steepness, 8)) * roundoff;
  return {.value = x.value + bias,
          .error = x.error + slope * std::abs(bias) + 2 * roundoff * std::abs(x.value + bias)};
}

Point PointEvaluator::relativeBias(const BodyOp &op, size_t, const Coordinates &at) {
  const std::vector<int64_t> along = attributeOf(op, attribute::along);
  const int64_t farthest = attributeOf(op, attribute::distance);
  Coordinates place(along.size() + 1);
  for (size_t d = 0; d < along.size(); ++d) place[d] = at[size_t(along[d])];
  const int64_t own = hasAttribute(op, attribute::direction) ? -distance(op, at) : distance(op, at);
  place[along.size()] =
      std::clamp<int64_t>(own + farthest, 0, extent(op.operands[1], along.size()) - 1);
  const Point x = operand(op, 0, at), bias = evaluate(op.operands[1], place);
  return {.value = x.value + bias.value,
          .error = x.error + bias.error + 2 * roundoff * std::abs(x.value + bias.value)};
}

Point PointEvaluator::expandBuckets(const BodyOp &op, size_t, const Coordinates &at) {
  const std::optional<BucketKind> kind = bucketKindNamed(attributeOf(op, attribute::kind));
  if (!kind)
    throw Error::unsupported("kernel '{}': buckets of kind '{}' have no reference evaluation",
                             kernel.name, attributeOf(op, attribute::kind));
  const size_t last = at.size() - 1;
  const int64_t farthest = attributeOf(op, attribute::distance);
  Coordinates place(at.size());
  place[0] = relativeBucket(*kind, extent(op.operands[0], 0), farthest, at[last] - farthest);
  for (size_t d = 0; d < last; ++d) place[d + 1] = at[d];
  return evaluate(op.operands[0], place);
}

}  // namespace weft::reference
