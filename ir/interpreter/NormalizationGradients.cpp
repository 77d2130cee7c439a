// Every routine walks its tensors as [outer][extent][inner] around the normalized axis, one row (o,
// i) at a time.
#include "ir/interpreter/NormalizationGradients.h"

namespace weft::reference {
namespace {

/// One row of g = dy * gamma and of the normalized values n, with their means.
template <typename Real>
struct Row {
  std::vector<Real> g, n;
  Real meanOfG = 0, meanOfGn = 0;

  Row(const TensorValue &dy, const TensorValue &x, const TensorValue &gamma, Real mean, Real rstd,
      const AxisView &view, int64_t o, int64_t i) {
    for (int64_t e = 0; e < view.extent; ++e) {
      const int64_t at = view.at(o, e, i);
      g.push_back(Real(dy.elements[at]) * Real(gamma.elements[e]));
      n.push_back((Real(x.elements[at]) - mean) * rstd);
      meanOfG += g.back();
      meanOfGn += g.back() * n.back();
    }
    meanOfG /= Real(view.extent);
    meanOfGn /= Real(view.extent);
  }
};

}  // namespace

template <typename Real>
TensorValue softmaxDx(const TensorValue &dy, const TensorValue &y, int64_t axis) {
  const AxisView view(y.shape, axis);
  TensorValue result = zeros(y.shape);
  forEachRow(view, [&](int64_t o, int64_t i) {
    Real sum = 0;
    for (int64_t e = 0; e < view.extent; ++e)
      sum += Real(dy.elements[view.at(o, e, i)]) * Real(y.elements[view.at(o, e, i)]);
    for (int64_t e = 0; e < view.extent; ++e)
      result.elements[view.at(o, e, i)] =
          Real(y.elements[view.at(o, e, i)]) * (Real(dy.elements[view.at(o, e, i)]) - sum);
  });
  return result;
}

template <typename Real>
TensorValue layerNormDx(const TensorValue &dy, const TensorValue &x, const TensorValue &gamma,
                        const TensorValue &mean, const TensorValue &rstd, int64_t axis) {
  const AxisView view(x.shape, axis);
  TensorValue result = zeros(x.shape);
  forEachRow(view, [&](int64_t o, int64_t i) {
    const Real scale = Real(rstd.elements[o * view.inner + i]);
    const Row<Real> row(dy, x, gamma, Real(mean.elements[o * view.inner + i]), scale, view, o, i);
    for (int64_t e = 0; e < view.extent; ++e)
      result.elements[view.at(o, e, i)] =
          scale * (row.g[e] - row.meanOfG - row.n[e] * row.meanOfGn);
  });
  return result;
}

template <typename Real>
TensorValue rmsNormDx(const TensorValue &dy, const TensorValue &x, const TensorValue &gamma,
                      const TensorValue &rstd, int64_t axis) {
  const AxisView view(x.shape, axis);
  TensorValue result = zeros(x.shape);
  forEachRow(view, [&](int64_t o, int64_t i) {
    const Real scale = Real(rstd.elements[o * view.inner + i]);
    const Row<Real> row(dy, x, gamma, Real(0), scale, view, o, i);
    for (int64_t e = 0; e < view.extent; ++e)
      result.elements[view.at(o, e, i)] = scale * (row.g[e] - row.n[e] * row.meanOfGn);
  });
  return result;
}

template <typename Real>
TensorValue gammaGradient(const TensorValue &dy, const TensorValue &x, const TensorValue *mean,
                          const TensorValue &rstd, int64_t axis) {
  const AxisView view(x.shape, axis);
  std::vector<Real> sums(view.extent);
  forEachRow(view, [&](int64_t o, int64_t i) {
    const int64_t row = o * view.inner + i;
    const Real center = mean ? Real(mean->elements[row]) : Real(0),
               scale = Real(rstd.elements[row]);
    for (int64_t e = 0; e < view.extent; ++e) {
      const int64_t at = view.at(o, e, i);
      sums[e] += Real(dy.elements[at]) * ((Real(x.elements[at]) - center) * scale);
    }
  });
  return {.shape = {view.extent}, .elements = {sums.begin(), sums.end()}};
}

// The two precisions of InterpreterOptions.
template TensorValue softmaxDx<float>(const TensorValue &, const TensorValue &, int64_t);
template TensorValue softmaxDx<double>(const TensorValue &, const TensorValue &, int64_t);
template TensorValue layerNormDx<float>(const TensorValue &, const TensorValue &,
                                        const TensorValue &, const TensorValue &,
                                        const TensorValue &, int64_t);
template TensorValue layerNormDx<double>(const TensorValue &, const TensorValue &,
                                         const TensorValue &, const TensorValue &,
                                         const TensorValue &, int64_t);
template TensorValue rmsNormDx<float>(const TensorValue &, const TensorValue &, const TensorValue &,
                                      const TensorValue &, int64_t);
template TensorValue rmsNormDx<double>(const TensorValue &, const TensorValue &,
                                       const TensorValue &, const TensorValue &, int64_t);
template TensorValue gammaGradient<float>(const TensorValue &, const TensorValue &,
                                          const TensorValue *, const TensorValue &, int64_t);
template TensorValue gammaGradient<double>(const TensorValue &, const TensorValue &,
                                           const TensorValue *, const TensorValue &, int64_t);

}  // namespace weft::reference
