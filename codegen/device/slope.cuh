// Derivatives of the activations, in fp32, with the errors of the functions they are made of (math.cuh): absolute errors of a
// few 1e-7, since the terms cancel around their zeros. All pass NaN through.
#pragma once

#include "weft/math.cuh"

namespace weft::slope {

/// Phi(x) + x phi(x), of x Phi(x) with the exact normal distribution: 1 less what it is at -x.
__device__ __forceinline__ float gelu(float x) {
  const float a = fabsf(x), below = bell(x) * fmaf(-0.3989422804f, a, tailOverBell(a));  // at -a
  return x < 0.0f ? below : 1.0f - below;
}

/// Of x s(v) with v = 2 sqrt(2 / pi) (x + 0.044715 x^3) and s the sigmoid: s + x s (1 - s) v'. Where s is 0 or 1 in fp32, v' may
/// overflow and does not count.
__device__ __forceinline__ float geluTanh(float x) {
  const float s = sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
  const float rest = x * (s * (1.0f - s));
  return rest == 0.0f ? s : s + rest * (1.5957691216057308f * (1.0f + 0.134145f * x * x));
}

/// s + x s (1 - s) with s the sigmoid.
__device__ __forceinline__ float silu(float x) {
  const float s = sigmoid(x);
  return s + x * (s * (1.0f - s));
}

}  // namespace weft::slope
