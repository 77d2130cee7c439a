// Gradients of softmax and of norms. Real (float or double) is the type of every sum and
// intermediate value.
#pragma once

#include "ir/interpreter/Tensor.h"

namespace weft::reference {

/// y * (dy - sum(dy * y)) along the axis; a row of zeros (all of it was masked) gives zeros.
template <typename Real>
TensorValue softmaxDx(const TensorValue &dy, const TensorValue &y, int64_t axis);

/// rstd * (g - mean(g) - n * mean(g * n)) along the axis, with g = dy * gamma and n = (x - mean) *
/// rstd; statistics have the shape of x without the axis.
template <typename Real>
TensorValue layerNormDx(const TensorValue &dy, const TensorValue &x, const TensorValue &gamma,
                        const TensorValue &mean, const TensorValue &rstd, int64_t axis);
/// rstd * (g - n * mean(g * n)) with n = x * rstd.
template <typename Real>
TensorValue rmsNormDx(const TensorValue &dy, const TensorValue &x, const TensorValue &gamma,
                      const TensorValue &rstd, int64_t axis);
/// Sum of dy * n over all axes but the given one; without a mean n = x * rstd.
template <typename Real>
TensorValue gammaGradient(const TensorValue &dy, const TensorValue &x, const TensorValue *mean,
                          const TensorValue &rstd, int64_t axis);

}  // namespace weft::reference
