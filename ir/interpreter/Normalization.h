// Normalizations and reductions along axes. Real (float or double) is the type of every sum and
// intermediate value.
#pragma once

#include "ir/interpreter/Tensor.h"

#include <span>

namespace weft::reference {

/// exp(x - max) / sum along the axis. A row whose elements are all -inf gives zeros.
template <typename Real>
TensorValue softmax(const TensorValue &x, int64_t axis);

/// Normalized tensor and the statistics kept for the backward pass (the shape of x without the
/// axis).
struct Normalized {
  TensorValue y, mean, rstd;
};
/// (x - mean) * rstd * gamma + beta, variance over the axis without Bessel's correction; gamma and
/// beta have rank 1. `beta` may be null: zeros.
template <typename Real>
Normalized layerNorm(const TensorValue &x, const TensorValue &gamma, const TensorValue *beta,
                     int64_t axis, double epsilon);
/// x * rstd * gamma with rstd = 1 / sqrt(mean(x^2) + epsilon); `mean` stays empty.
template <typename Real>
Normalized rmsNorm(const TensorValue &x, const TensorValue &gamma, int64_t axis, double epsilon);

enum class Reduction : uint8_t { sum, maximum };
template <typename Real>
TensorValue reduce(const TensorValue &x, Reduction kind, std::span<const int64_t> axes);

/// Softmax decomposed over sub-vectors of `tile` elements (section 3.2 of "Accelerating Transformer
/// Networks through Recomposing Softmax Layers"): exponentials exp(x - m') against each
/// sub-vector's own maximum, and its sum d'. The last sub-vector may be short; one that is all -inf
/// gives zeros and d' = 0.
struct LocalSoftmax {
  TensorValue exponentials, maximum, sum;
};
template <typename Real>
LocalSoftmax localSoftmax(const TensorValue &x, int64_t axis, int64_t tile);
/// r' = exp(m' - m) / sum over sub-vectors of exp(m' - m) d', m the maximum of all m'. Empty rows
/// give zeros.
template <typename Real>
TensorValue reduceSubvectors(const TensorValue &maximum, const TensorValue &sum, int64_t axis);
/// x' * r', each element by the factor of its sub-vector.
template <typename Real>
TensorValue globalScaling(const TensorValue &exponentials, const TensorValue &factor, int64_t axis,
                          int64_t tile);

}  // namespace weft::reference
