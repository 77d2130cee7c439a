// Every routine walks its tensor as [outer][extent][inner] and handles one row (o, i) at a time. A
// NaN in a row makes the whole row NaN: the maximum propagates it, so that it cannot hide behind
// the rule for empty rows.
#include "ir/interpreter/Normalization.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::reference {
namespace {

template <typename Real>
constexpr Real minusInfinity = -std::numeric_limits<Real>::infinity();

template <typename Real>
Real larger(Real a, Real b) {
  return std::isnan(a) || a > b ? a : b;  // a NaN on either side wins
}

/// A copy of one row in the arithmetic type.
template <typename Real>
std::vector<Real> rowOf(const TensorValue &x, const AxisView &view, int64_t o, int64_t i) {
  std::vector<Real> row(view.extent);
  for (int64_t e = 0; e < view.extent; ++e) row[e] = Real(x.elements[view.at(o, e, i)]);
  return row;
}

/// Exponentials against the maximum, in place; zeros if all elements are -inf.
template <typename Real>
struct Exponentials {
  Real maximum = minusInfinity<Real>, sum = 0;

  explicit Exponentials(std::span<Real> row) {
    for (Real value : row) maximum = larger(maximum, value);
    for (Real &value : row) {
      value = maximum == minusInfinity<Real> ? Real(0) : std::exp(value - maximum);
      sum += value;
    }
  }
};

TensorValue statistics(const TensorValue &x, int64_t axis) {
  return zeros(withoutAxes(x.shape, std::span(&axis, 1)));
}

}  // namespace

template <typename Real>
TensorValue softmax(const TensorValue &x, int64_t axis) {
  const AxisView view(x.shape, axis);
  TensorValue result = zeros(x.shape);
  forEachRow(view, [&](int64_t o, int64_t i) {
    std::vector<Real> row = rowOf<Real>(x, view, o, i);
    const Exponentials<Real> all{std::span<Real>(row)};
    for (int64_t e = 0; e < view.extent; ++e)
      result.elements[view.at(o, e, i)] =
          all.maximum == minusInfinity<Real> ? Real(0) : row[e] / all.sum;
  });
  return result;
}

template <typename Real>
Normalized layerNorm(const TensorValue &x, const TensorValue &gamma, const TensorValue *beta,
                     int64_t axis, double epsilon) {
  const AxisView view(x.shape, axis);
  Normalized result{.y = zeros(x.shape), .mean = statistics(x, axis), .rstd = statistics(x, axis)};
  forEachRow(view, [&](int64_t o, int64_t i) {
    const std::vector<Real> row = rowOf<Real>(x, view, o, i);
    Real total = 0, squares = 0;
    for (Real value : row) total += value;
    const Real mean = total / Real(view.extent);
    for (Real value : row) squares += (value - mean) * (value - mean);
    const Real rstd = Real(1) / std::sqrt(squares / Real(view.extent) + Real(epsilon));
    for (int64_t e = 0; e < view.extent; ++e)
      result.y.elements[view.at(o, e, i)] = (row[e] - mean) * rstd * Real(gamma.elements[e]) +
                                            (beta ? Real(beta->elements[e]) : Real(0));
    result.mean.elements[o * view.inner + i] = mean;
    result.rstd.elements[o * view.inner + i] = rstd;
  });
  return result;
}

template <typename Real>
Normalized rmsNorm(const TensorValue &x, const TensorValue &gamma, int64_t axis, double epsilon) {
  const AxisView view(x.shape, axis);
  Normalized result{.y = zeros(x.shape), .mean = {}, .rstd = statistics(x, axis)};
  forEachRow(view, [&](int64_t o, int64_t i) {
    const std::vector<Real> row = rowOf<Real>(x, view, o, i);
    Real squares = 0;
    for (Real value : row) squares += value * value;
    const Real rstd = Real(1) / std::sqrt(squares / Real(view.extent) + Real(epsilon));
    for (int64_t e = 0; e < view.extent; ++e)
      result.y.elements[view.at(o, e, i)] = row[e] * rstd * Real(gamma.elements[e]);
    result.rstd.elements[o * view.inner + i] = rstd;
  });
  return result;
}

template <typename Real>
TensorValue reduce(const TensorValue &x, Reduction kind, std::span<const int64_t> axes) {
  TensorValue result = zeros(withoutAxes(x.shape, axes));
  const Shape resultStrides = stridesOf(result.shape);
  Shape strides(x.shape.size());  // of the result along every axis of x; zero where reduced
  for (size_t d = 0, kept = 0; d < x.shape.size(); ++d)
    if (std::ranges::find(axes, int64_t(d)) == axes.end()) strides[d] = resultStrides[kept++];

  std::vector<Real> totals(result.elements.size(),
                           kind == Reduction::sum ? Real(0) : minusInfinity<Real>);
  for (size_t n = 0; n < x.elements.size(); ++n) {
    const Shape coordinates = coordinatesOf(int64_t(n), x.shape);
    int64_t position = 0;
    for (size_t d = 0; d < coordinates.size(); ++d) position += coordinates[d] * strides[d];
    const Real value = Real(x.elements[n]);
    totals[position] =
        kind == Reduction::sum ? totals[position] + value : larger(totals[position], value);
  }
  std::ranges::copy(totals, result.elements.begin());
  return result;
}

template <typename Real>
LocalSoftmax localSoftmax(const TensorValue &x, int64_t axis, int64_t tile) {
  const AxisView view(x.shape, axis);
  Shape shape = x.shape;
  shape[axis] = (view.extent + tile - 1) / tile;
  LocalSoftmax result{.exponentials = zeros(x.shape), .maximum = zeros(shape), .sum = zeros(shape)};
  const AxisView small(shape, axis);
  forEachRow(view, [&](int64_t o, int64_t i) {
    std::vector<Real> row = rowOf<Real>(x, view, o, i);
    for (int64_t n = 0; n < small.extent; ++n) {
      const int64_t start = n * tile, size = std::min(tile, view.extent - start);
      const Exponentials<Real> local{std::span<Real>(row).subspan(start, size)};
      result.maximum.elements[small.at(o, n, i)] = local.maximum;
      result.sum.elements[small.at(o, n, i)] = local.sum;
    }
    for (int64_t e = 0; e < view.extent; ++e)
      result.exponentials.elements[view.at(o, e, i)] = row[e];
  });
  return result;
}

template <typename Real>
TensorValue reduceSubvectors(const TensorValue &maximum, const TensorValue &sum, int64_t axis) {
  const AxisView view(maximum.shape, axis);
  TensorValue result = zeros(maximum.shape);
  forEachRow(view, [&](int64_t o, int64_t i) {
    std::vector<Real> factors = rowOf<Real>(maximum, view, o, i);
    const Exponentials<Real> all{std::span<Real>(factors)};
    Real total = 0;
    for (int64_t n = 0; n < view.extent; ++n)
      total += factors[n] * Real(sum.elements[view.at(o, n, i)]);
    for (int64_t n = 0; n < view.extent; ++n)
      result.elements[view.at(o, n, i)] =
          all.maximum == minusInfinity<Real> ? Real(0) : factors[n] / total;
  });
  return result;
}

template <typename Real>
TensorValue globalScaling(const TensorValue &exponentials, const TensorValue &factor, int64_t axis,
                          int64_t tile) {
  const AxisView view(exponentials.shape, axis), small(factor.shape, axis);
  TensorValue result = zeros(exponentials.shape);
  forEachRow(view, [&](int64_t o, int64_t i) {
    for (int64_t e = 0; e < view.extent; ++e)
      result.elements[view.at(o, e, i)] = Real(exponentials.elements[view.at(o, e, i)]) *
                                          Real(factor.elements[small.at(o, e / tile, i)]);
  });
  return result;
}

// The two precisions of InterpreterOptions.
template TensorValue softmax<float>(const TensorValue &, int64_t);
template TensorValue softmax<double>(const TensorValue &, int64_t);
template Normalized layerNorm<float>(const TensorValue &, const TensorValue &, const TensorValue *,
                                     int64_t, double);
template Normalized layerNorm<double>(const TensorValue &, const TensorValue &, const TensorValue *,
                                      int64_t, double);
template Normalized rmsNorm<float>(const TensorValue &, const TensorValue &, int64_t, double);
template Normalized rmsNorm<double>(const TensorValue &, const TensorValue &, int64_t, double);
template TensorValue reduce<float>(const TensorValue &, Reduction, std::span<const int64_t>);
template TensorValue reduce<double>(const TensorValue &, Reduction, std::span<const int64_t>);
template LocalSoftmax localSoftmax<float>(const TensorValue &, int64_t, int64_t);
template LocalSoftmax localSoftmax<double>(const TensorValue &, int64_t, int64_t);
template TensorValue reduceSubvectors<float>(const TensorValue &, const TensorValue &, int64_t);
template TensorValue reduceSubvectors<double>(const TensorValue &, const TensorValue &, int64_t);
template TensorValue globalScaling<float>(const TensorValue &, const TensorValue &, int64_t,
                                          int64_t);
template TensorValue globalScaling<double>(const TensorValue &, const TensorValue &, int64_t,
                                           int64_t);

}  // namespace weft::reference
