// Scalar functions of the element-wise ops, in fp32. Errors are relative to the exact result unless
// said otherwise; all pass NaN through.
#pragma once

#include "weft/ptx.cuh"

namespace weft {

/// max(x, 0); NaN stays NaN.
__device__ __forceinline__ float relu(float x) { return ptx::maximum(x, 0.0f); }

/// e^x, at most 2 ulp off.
__device__ __forceinline__ float exp(float x) { return expf(x); }

/// e^x in two instructions: relative error at most 2^-22 + |x| 2^-23, and 0 below 2^-126. What
/// exponentials that are summed or rounded to 16 bits need; kernels that evaluate one for every
/// element are bound by it otherwise.
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

/// (1 - Phi(a)) / e^(-a^2 / 2) of the normal distribution for a >= 0: t Q(t), t = 1 / (1 + 0.3 a).
/// Q is the polynomial of degree 7 with the least relative error, 1.3e-7, on [0, 13.5], where the
/// tail ends in fp32.
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

/// x Phi(x) with the exact normal distribution; the tail keeps the relative error small for
/// negative x.
__device__ __forceinline__ float gelu(float x) {
  const float tail = bell(x) * tailOverBell(fabsf(x));
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

/// max(x, 0) - a (1 - Phi(a)) with a = |x|, the tail as 2 to a polynomial of which `start` is the
/// value at 0. From `end` on the product stands still at a number that rounds to 0. For results
/// that are stored in 16 bits at once: half of the instructions.
template <int degree>
struct ShortGelu {
  float end, start, power[degree];
  __device__ __forceinline__ float operator()(float x) const {
    const float a = fminf(fabsf(x), end);
    float exponent = power[degree - 1];
#pragma unroll
    for (int term = degree - 2; term >= 0; --term) exponent = fmaf(exponent, a, power[term]);
    return fmaf(-a, ptx::exp2(fmaf(exponent, a, start)), relu(x));
  }
};

/// Coefficients have the least error in units in the last place of the stored type: at most 0.15.
__device__ __forceinline__ float geluForHalf(float x) {
  constexpr ShortGelu<5> function = {
      6.0f, -1.0001044f, {-1.1494232f, -0.46357596f, -0.04864513f, 0.005949478f, -0.00033313627f}};
  return function(x);
}
__device__ __forceinline__ float geluForBfloat16(float x) {
  constexpr ShortGelu<7> function = {13.3f,
                                     -1.0008092f,
                                     {-1.1426873f, -0.47329736f, -0.044222124f, 0.0054104878f,
                                      -0.0004128173f, 1.7473367e-05f, -3.1134059e-07f}};
  return function(x);
}

/// The tanh approximation of gelu (Hendrycks and Gimpel): x sigmoid(2 sqrt(2 / pi) (x + 0.044715
/// x^3)).
__device__ __forceinline__ float geluTanh(float x) {
  return x * sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
}

/// a / b, at most 2 ulp off for |b| in [2^-126, 2^126].
__device__ __forceinline__ float divide(float a, float b) { return ptx::divide(a, b); }

/// The larger of two, NaN if either is NaN.
__device__ __forceinline__ float maximum(float a, float b) { return ptx::maximum(a, b); }

/// Rotation of one pair of a rotary embedding: the cosine and sine of position * base^(-2 pair /
/// extent).
struct Rotation {
  float cosine, sine;
};

/// `frequency` is base^(-2 pair / extent). The angle is reduced in revolutions with a compensated
/// product, so large positions lose nothing beyond the rounding of the frequency: about 1e-7 *
/// angle.
__device__ __forceinline__ Rotation rotation(int position, float frequency) {
  constexpr float high = 0.15915494f, low = 6.4206383e-09f;  // 1 / (2 pi) in two floats
  const float revolutionsPerStep = frequency * high;
  const float rest = fmaf(frequency, high, -revolutionsPerStep) + frequency * low;
  const float revolutions = float(position) * revolutionsPerStep;
  const float error =
      fmaf(float(position), revolutionsPerStep, -revolutions) + float(position) * rest;
  const float part = (revolutions - rintf(revolutions)) + error;
  return {ptx::cosPi(2.0f * part), ptx::sinPi(2.0f * part)};
}

/// base^(-2 pair / extent), with `scale` = -2 log2(base) / extent.
__device__ __forceinline__ float rotaryFrequency(int pair, float scale) {
  return exp2f(float(pair) * scale);
}

}  // namespace weft
