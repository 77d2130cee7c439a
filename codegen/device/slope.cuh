// Derivatives of the activations, in fp32, with the errors of the functions they are made of
// (math.cuh): absolute errors of a few 1e-7, since the terms cancel around their zeros. All pass
// NaN through.
#pragma once

#include "weft/math.cuh"

namespace weft::slope {

/// Phi(x) + x phi(x), of x Phi(x) with the exact normal distribution: 1 less what it is at -x.
__device__ __forceinline__ float gelu(float x) {
  const float a = fabsf(x), below = bell(x) * fmaf(-0.3989422804f, a, tailOverBell(a));  // at -a
  return x < 0.0f ? below : 1.0f - below;
}

/// Phi(x) + x phi(x), below 0 as 2 to a(linear a + square a) times a polynomial of a = |x|. For
/// results that are stored in 16 bits at once, of an x that came so. From `end` on both are 0 in
/// fp32, and the polynomial may overflow; an x of binary16 stays below.
template <int degree>
struct ShortGeluSlope {
  float end, square, linear, factor[degree + 1];
  __device__ __forceinline__ float operator()(float x) const {
    const float a = end > 0.0f ? ptx::minimum(fabsf(x), end) : fabsf(x);
    float below = factor[degree];
#pragma unroll
    for (int term = degree - 1; term >= 0; --term) below = fmaf(below, a, factor[term]);
    below *= ptx::exp2(fmaf(square, a, linear) * a);
    return x < 0.0f ? below : 1.0f - below;
  }
};

/// Coefficients have the least error in units in the last place of both terms in the stored type:
/// at most 0.15.
__device__ __forceinline__ float geluForHalf(float x) {
  constexpr ShortGeluSlope<4> function = {
      0.0f,
      -0.66476178f,
      -0.65821731f,
      {0.49996772f, -0.56866372f, -0.08743538f, -0.060333364f, 0.0080585731f}};
  return function(x);
}
__device__ __forceinline__ float geluForBfloat16(float x) {
  constexpr ShortGeluSlope<5> function = {
      14.0f,
      -0.71186268f,
      -0.6109826f,
      {0.49983969f, -0.58202624f, -0.062526293f, -0.064993277f, 0.0019300127f, -0.00084117032f}};
  return function(x);
}

/// The sigmoid and its slope s (1 - s), which loses nothing where s is close to 1.
struct SigmoidSlope {
  float sigmoid, slope;
};

__device__ __forceinline__ SigmoidSlope sigmoidSlope(float x) {
  const float e = expFast(-fabsf(x)), larger = ptx::reciprocal(1.0f + e);
  return {x < 0.0f ? e * larger : larger, e * larger * larger};
}

/// Of x s(v) with v = 2 sqrt(2 / pi) (x + 0.044715 x^3) and s the sigmoid: s + x s (1 - s) v'.
/// Where s is 0 or 1 in fp32, v' may overflow and does not count.
__device__ __forceinline__ float geluTanh(float x) {
  const SigmoidSlope s = sigmoidSlope(1.5957691216057308f * (x + 0.044715f * x * x * x));
  const float rest = x * s.slope;
  return rest == 0.0f ? s.sigmoid
                      : s.sigmoid + rest * (1.5957691216057308f * (1.0f + 0.134145f * x * x));
}

/// s + x s (1 - s) with s the sigmoid.
__device__ __forceinline__ float silu(float x) {
  const SigmoidSlope s = sigmoidSlope(x);
  return s.sigmoid + x * s.slope;
}

}  // namespace weft::slope
