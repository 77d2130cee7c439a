// Tensors are walked as [outer][extent][inner] around the axis of classes; row (o, i) has one
// label.
#include "ir/interpreter/CrossEntropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::reference {

template <typename Real>
CrossEntropy crossEntropy(const TensorValue &x, const TensorValue &labels, int64_t axis) {
  const AxisView view(x.shape, axis);
  CrossEntropy result{.losses = zeros(labels.shape), .logSums = zeros(labels.shape)};
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      Real largest = -std::numeric_limits<Real>::infinity(), total = 0;
      for (int64_t e = 0; e < view.extent; ++e)
        largest = std::max(largest, Real(x.elements[view.at(o, e, i)]));
      for (int64_t e = 0; e < view.extent; ++e)
        total += std::exp(Real(x.elements[view.at(o, e, i)]) - largest);
      const int64_t row = o * view.inner + i, label = int64_t(labels.elements[row]);
      const Real logSum = largest + std::log(total);
      result.logSums.elements[row] = logSum;
      if (label >= 0 && label < view.extent)
        result.losses.elements[row] = logSum - Real(x.elements[view.at(o, label, i)]);
    }
  return result;
}

template <typename Real>
TensorValue crossEntropyDx(const TensorValue &x, const TensorValue &labels,
                           const TensorValue &logSums, const TensorValue &dy, int64_t axis) {
  const AxisView view(x.shape, axis);
  TensorValue result = zeros(x.shape);
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i) {
      const int64_t row = o * view.inner + i, label = int64_t(labels.elements[row]);
      if (label < 0 || label >= view.extent) continue;
      for (int64_t e = 0; e < view.extent; ++e) {
        const Real probability =
            std::exp(Real(x.elements[view.at(o, e, i)]) - Real(logSums.elements[row]));
        result.elements[view.at(o, e, i)] =
            Real(dy.elements[row]) * (probability - (e == label ? Real(1) : Real(0)));
      }
    }
  return result;
}

// The two precisions of InterpreterOptions.
template CrossEntropy crossEntropy<float>(const TensorValue &, const TensorValue &, int64_t);
template CrossEntropy crossEntropy<double>(const TensorValue &, const TensorValue &, int64_t);
template TensorValue crossEntropyDx<float>(const TensorValue &, const TensorValue &,
                                           const TensorValue &, const TensorValue &, int64_t);
template TensorValue crossEntropyDx<double>(const TensorValue &, const TensorValue &,
                                            const TensorValue &, const TensorValue &, int64_t);

}  // namespace weft::reference
