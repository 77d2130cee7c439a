// Cross entropy of rows of logits against labels, and its gradient. Real (float or double) is the
// type of every sum.
#pragma once

#include "ir/interpreter/Tensor.h"

namespace weft::reference {

/// Per row along the axis: log(sum(exp(x))) - x[label], zero where the label lies outside the axis;
/// and log(sum(exp(x))).
struct CrossEntropy {
  TensorValue losses, logSums;
};
template <typename Real>
CrossEntropy crossEntropy(const TensorValue &x, const TensorValue &labels, int64_t axis);

/// dy * (exp(x - logSum) - [label]), zero in rows whose label lies outside the axis.
template <typename Real>
TensorValue crossEntropyDx(const TensorValue &x, const TensorValue &labels,
                           const TensorValue &logSums, const TensorValue &dy, int64_t axis);

}  // namespace weft::reference
