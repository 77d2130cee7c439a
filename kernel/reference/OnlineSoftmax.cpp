// One element of the contractions between a decomposed and a fused attention, from SPEC.md's
// definitions.
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"
#include "kernel/reference/PointEvaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::reference {
namespace {

/// The dimension of an operand whose letter the result lacks.
size_t contracted(const std::string &term, const std::string &result) {
  return term.find_first_not_of(result);
}

}  // namespace

/// The sum over one sub-vector, whose number is the last coordinate. Kept exponentials have one
/// factor, which a kernel may apply before the sum or behind it.
Point PointEvaluator::subvectorContract(const BodyOp &op, size_t, const Coordinates &at) {
  const Terms terms = termsOf(op, at.size() - 1);
  const Coordinates element = at.without(at.size() - 1);
  Coordinates x = place(terms, 0, element), v = place(terms, 1, element);
  const size_t dimension = contracted(terms.operands[0], terms.result),
               dimensionOfV = contracted(terms.operands[1], terms.result);
  const int64_t tile = attributeOf(op, attribute::tile), begin = at[at.size() - 1] * tile,
                end = std::min(begin + tile, extent(op.operands[0], dimension));
  const std::optional<Dropout> dropout = dropoutOf(op);
  Point total;
  double magnitude = 0, squares = 0;
  for (int64_t k = begin; k < end; ++k) {
    x[dimension] = v[dimensionOfV] = k;
    if (dropout && !keeps(op, *dropout, x)) continue;
    const Point a = factor(op, 0, x), b = factor(op, 1, v);
    total.value += a.value * b.value;
    total.error += a.error * std::abs(b.value) + b.error * std::abs(a.value);
    magnitude += std::abs(a.value * b.value);
    squares += a.value * b.value * a.value * b.value;
  }
  total.error += sumError(end - begin) * magnitude;
  if (isTf32(op)) total.error += tf32SumError(total.value, magnitude, squares);
  if (!dropout) return total;
  const double scale = dropoutScale(dropout->p);
  return {.value = total.value * scale, .error = (total.error + 4 * roundoff * magnitude) * scale};
}

/// sum(exp(x - max) * v) / sum(exp(x - max)) (result 0), or max + log(sum(exp(x - max))) of a row
/// (result 1). A kernel rescales sums whenever its running maximum grows. The exponents of these
/// factors and of an element's exponential add up to |x - max|, so that exponential() covers them;
/// their other roundings are no more than those of the sum itself. The divisor is of all
/// exponentials, the sum of those that dropout keeps; their factor is applied to each before it is
/// rounded, or to the result.
Point PointEvaluator::onlineSoftmaxContract(const BodyOp &op, size_t result,
                                            const Coordinates &at) {
  const Terms terms = termsOf(op, rank(op.results[0]));
  const size_t dimension = contracted(terms.operands[0], terms.result),
               dimensionOfV = contracted(terms.operands[1], terms.result);
  const int64_t count = extent(op.operands[0], dimension);
  Coordinates x = result == 0 ? place(terms, 0, at) : at.with(dimension, 0);
  const Row &all =
      row(op, x.without(dimension), [&] { return exponentials(op, x, dimension, 0, count, -1); });
  const bool isEmpty = all.first.value == -std::numeric_limits<double>::infinity();
  if (result == 1) return isEmpty ? all.first : logSum(all);
  if (isEmpty) return {};

  const std::span<const int64_t> span = x;
  ExponentialRow &kept = exponentialRows[&op];
  if (kept.elements.empty() || !std::ranges::equal(kept.place, span)) {
    kept.place.assign(span.begin(), span.end());
    kept.elements.clear();
    for (int64_t k = 0; k < count; ++k) {
      x[dimension] = k;
      kept.elements.push_back(exponential(operand(op, 0, x), all.first));
    }
  }
  const std::optional<Dropout> dropout = dropoutOf(op);
  // f32 exponentials are not rounded to less.
  const DType type = kernel.values[size_t(op.operands[1])].dtype;
  Coordinates v = place(terms, 1, at);
  Point sum;
  double magnitude = 0, squares = 0, lostTotal = 0, lostMagnitude = 0, lostSquares = 0;
  for (int64_t k = 0; k < count; ++k) {
    x[dimension] = v[dimensionOfV] = k;
    if (dropout && !keeps(op, *dropout, x)) continue;
    const Point &e = kept.elements[size_t(k)], value = factor(op, 1, v);
    sum.value += e.value * value.value;
    sum.error += e.error * std::abs(value.value) + value.error * e.value;
    magnitude += e.value * std::abs(value.value);
    squares += e.value * value.value * e.value * value.value;
    if (type == DType::f32) continue;
    const double lost = roundedExponential(type, e.value) * value.value;
    lostTotal += lost;
    lostMagnitude += std::abs(lost);
    lostSquares += lost * lost;
  }
  sum.error += sumError(count) * magnitude +
               roundedExponentialSumError(lostTotal, lostMagnitude, lostSquares);
  if (isTf32(op)) sum.error += tf32SumError(sum.value, magnitude, squares);
  const double divisor = all.second.value;
  const Point quotient{.value = sum.value / divisor,
                       .error = (sum.error + std::abs(sum.value / divisor) * all.second.error) /
                                    (divisor - all.second.error) +
                                4 * roundoff * std::abs(sum.value / divisor)};
  if (!dropout) return quotient;
  const double scale = dropoutScale(dropout->p);
  return {.value = quotient.value * scale,
          .error = (quotient.error + 4 * roundoff * magnitude / divisor) * scale};
}

}  // namespace weft::reference
