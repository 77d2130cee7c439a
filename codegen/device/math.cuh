// Scalar functions of the element-wise ops, in fp32. Errors are relative to the exact result unless said otherwise; all
// pass NaN through.
#pragma once

#include "weft/ptx.cuh"

namespace weft {

/// max(x, 0); NaN stays NaN.
__device__ __forceinline__ float relu(float x) { return ptx::maximum(x, 0.0f); }

/// e^x, at most 2 ulp off.
__device__ __forceinline__ float exp(float x) { return expf(x); }

/// e^x in two instructions: relative error at most 2^-22 + |x| 2^-23, and 0 below 2^-126. What exponentials that are summed
/// or rounded to 16 bits need; kernels that evaluate one for every element are bound by it otherwise.
__device__ __forceinline__ float expFast(float x) { return ptx::exp2(x * 1.44269504f); }

/// tanh(x), at most 2 ulp off.
__device__ __forceinline__ float tanh(float x) { return tanhf(x); }

/// Rounded correctly.
__device__ __forceinline__ float squareRoot(float x) { return sqrtf(x); }

/// 1 / sqrt(x), at most 2 ulp off.
__device__ __forceinline__ float rsqrt(float x) { return ptx::inverseSquareRoot(x); }

/// 1 / (1 + e^-x), with the error of expFast.
__device__ __forceinline__ float sigmoid(float x) { return ptx::reciprocal(1.0f + expFast(-x)); }

/// x sigmoid(x).
__device__ __forceinline__ float silu(float x) { return x * sigmoid(x); }

/// e^(-a^2 / 2), where it is at least 2^-126.
__device__ __forceinline__ float bell(float a) { return ptx::exp2(-0.72134752f * a * a); }

/// (1 - Phi(a)) / e^(-a^2 / 2) of the normal distribution for a >= 0: t Q(t), t = 1 / (1 + 0.3 a). Q is the polynomial of degree
/// 7 with the least relative error, 1.3e-7, on [0, 13.5], where the tail ends in fp32.
__device__ __forceinline__ float tailOverBell(float a) {
  const float t = ptx::reciprocal(fmaf(0.3f, a, 1.0f));
  float q = fmaf(0.035932448f, t, -0.15827877f);
  q = fmaf(q, t, 0.20821101f);
  q = fmaf(q, t, -0.055397575f);
  q = fmaf(q, t, 0.129471f);
  q = fmaf(q, t, 0.099636997f);
  q = fmaf(q, t, 0.12079843f);
  q = fmaf(q, t, 0.11962639f);
  return t * q;
}

/// x Phi(x) with the exact normal distribution; the tail keeps the relative error small for negative x.
__device__ __forceinline__ float gelu(float x) {
  const float tail = bell(x) * tailOverBell(fabsf(x));
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

/// The same where it is stored as binary16, in two thirds of the instructions: max(x, 0) - a (1 - Phi(a)) with a = |x|, and the
/// tail as 2 to a polynomial. Coefficients have the least error in units of what gelu does when x is 8 ulp off and its result, too;
/// they reach half of that. From a = 6 on the product stands still at 6e-9, which rounds to 0.
__device__ __forceinline__ float geluForHalf(float x) {
  const float a = fminf(fabsf(x), 6.0f);
  float power = fmaf(-7.4307724e-07f, a, 1.21337725e-05f);
  power = fmaf(power, a, -4.455851e-05f);
  power = fmaf(power, a, -0.00051290455f);
  power = fmaf(power, a, 0.0076043494f);
  power = fmaf(power, a, -0.05290799f);
  power = fmaf(power, a, -0.45905983f);
  power = fmaf(power, a, -1.1511235f);
  power = fmaf(power, a, -1.0f);
  return fmaf(-a, ptx::exp2(power), relu(x));
}

/// The tanh approximation of gelu (Hendrycks and Gimpel): x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)).
__device__ __forceinline__ float geluTanh(float x) {
  return x * sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
}

/// a / b, at most 2 ulp off for |b| in [2^-126, 2^126].
__device__ __forceinline__ float divide(float a, float b) { return ptx::divide(a, b); }

/// The larger of two, NaN if either is NaN.
__device__ __forceinline__ float maximum(float a, float b) { return ptx::maximum(a, b); }

/// Rotation of one pair of a rotary embedding: the cosine and sine of position * base^(-2 pair / extent).
struct Rotation {
  float cosine, sine;
};

/// `frequency` is base^(-2 pair / extent). The angle is reduced in turns with a compensated product, so large positions
/// lose nothing beyond the rounding of the frequency: about 1e-7 * angle.
__device__ __forceinline__ Rotation rotation(int position, float frequency) {
  constexpr float high = 0.15915494f, low = 6.4206383e-09f;  // 1 / (2 pi) in two floats
  const float turnsPerStep = frequency * high;
  const float rest = fmaf(frequency, high, -turnsPerStep) + frequency * low;
  const float turns = float(position) * turnsPerStep;
  const float error = fmaf(float(position), turnsPerStep, -turns) + float(position) * rest;
  const float part = (turns - rintf(turns)) + error;
  return {ptx::cosPi(2.0f * part), ptx::sinPi(2.0f * part)};
}

/// base^(-2 pair / extent), with `scale` = -2 log2(base) / extent.
__device__ __forceinline__ float rotaryFrequency(int pair, float scale) { return exp2f(float(pair) * scale); }

}  // namespace weft
