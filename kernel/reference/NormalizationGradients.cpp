// Gradients of softmax and of norms, from SPEC.md's definitions. Accumulators over a row are
// computed once and kept.
#include "kernel/Attributes.h"
#include "kernel/reference/PointEvaluator.h"

#include <algorithm>
#include <cmath>

namespace weft::reference {
namespace {

Point product(const Point &a, const Point &b) {
  const double value = a.value * b.value;
  return {.value = value,
          .error = a.error * std::abs(b.value) + std::abs(a.value) * b.error + a.error * b.error +
                   roundoff * std::abs(value)};
}

Point difference(const Point &a, const Point &b) {
  const double value = a.value - b.value;
  return {.value = value, .error = a.error + b.error + roundoff * std::abs(value)};
}

/// A sum of n terms with the magnitude that its rounding is relative to.
struct Sum {
  Point total;
  double magnitude = 0;

  void add(const Point &term) {
    total.value += term.value;
    total.error += term.error;
    magnitude += std::abs(term.value);
  }
  Point over(int64_t n, double divisor) const {
    return {.value = total.value / divisor,
            .error = (total.error + (sumError(n) + 2 * roundoff) * magnitude) / divisor};
  }
};

}  // namespace

Point PointEvaluator::softmaxDx(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const int64_t count = extent(op.operands[0], axis);
  const Row &sums = row(op, at.without(axis), [&] {
    Sum sum;
    Coordinates place = at;
    for (place[axis] = 0; place[axis] < count; ++place[axis])
      sum.add(product(operand(op, 0, place), operand(op, 1, place)));
    return Row{.first = sum.over(count, 1), .second = {}};
  });
  return product(operand(op, 1, at), difference(operand(op, 0, at), sums.first));
}

/// (x - mean) * rstd, or x * rstd: x is operand 1, rstd the last one, a mean stands before it if
/// `hasMean`.
Point PointEvaluator::normalizedValue(const BodyOp &op, const Coordinates &at, size_t axis,
                                      bool hasMean) {
  const Coordinates rowPlace = at.without(axis);
  const Point x = operand(op, 1, at), rstd = operand(op, op.operands.size() - 1, rowPlace);
  return product(hasMean ? difference(x, operand(op, op.operands.size() - 2, rowPlace)) : x, rstd);
}

/// rstd * (g - mean(g) - n * mean(g * n)) with g = dy * gamma; an RMS norm has no second term.
Point PointEvaluator::normDx(const BodyOp &op, size_t, const Coordinates &at) {
  const size_t axis = size_t(attributeOf(op, attribute::axis));
  const bool hasMean = op.operands.size() == 5;
  const int64_t count = extent(op.operands[0], axis);
  const Coordinates key = at.without(axis);
  const auto scaled = [&](const Coordinates &place) {
    const int64_t along[] = {place[axis]};
    return product(operand(op, 0, place),
                   operand(op, 2, Coordinates(std::span<const int64_t>(along))));
  };
  const Row &means = row(op, key, [&] {
    Sum gradients, products;
    for (int64_t n = 0; n < count; ++n) {
      const Coordinates place = key.with(axis, n);
      gradients.add(scaled(place));
      products.add(product(scaled(place), normalizedValue(op, place, axis, hasMean)));
    }
    return Row{.first = gradients.over(count, double(count)),
               .second = products.over(count, double(count))};
  });
  const Point along = product(normalizedValue(op, at, axis, hasMean), means.second);
  const Point centered = hasMean ? difference(scaled(at), means.first) : scaled(at);
  return product(operand(op, op.operands.size() - 1, key), difference(centered, along));
}

/// Sums of dy * n, and of dy, over all axes but the normalized one.
Point PointEvaluator::normDw(const BodyOp &op, size_t result, const Coordinates &at) {
  const bool hasMean = op.operands.size() == 4;
  const std::vector<int64_t> axes = attributeOf(op, attribute::axes);
  size_t normalized = 0;
  while (std::ranges::find(axes, int64_t(normalized)) != axes.end()) ++normalized;
  const Row &sums = row(op, at, [&] {
    Sum gamma, beta;
    Coordinates place(rank(op.operands[0]));
    place[normalized] = at[0];
    int64_t count = 1;
    for (int64_t axis : axes) count *= extent(op.operands[0], size_t(axis));
    for (int64_t n = 0; n < count; ++n) {
      int64_t rest = n;
      for (size_t d = place.size(); d-- > 0;) {
        if (d == normalized) continue;
        place[d] = rest % extent(op.operands[0], d);
        rest /= extent(op.operands[0], d);
      }
      const Point dy = operand(op, 0, place);
      gamma.add(product(dy, normalizedValue(op, place, normalized, hasMean)));
      beta.add(dy);
    }
    return Row{.first = gamma.over(count, 1), .second = beta.over(count, 1)};
  });
  return result == 0 ? sums.first : sums.second;
}

}  // namespace weft::reference
