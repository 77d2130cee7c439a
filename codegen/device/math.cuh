// Scalar functions of the element-wise ops, in fp32. Errors are relative to the exact result unless said otherwise; all
// pass NaN through.
#pragma once

#include "weft/ptx.cuh"

namespace weft {

/// max(x, 0).
__device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }

/// e^x, at most 2 ulp off.
__device__ __forceinline__ float exp(float x) { return expf(x); }

/// tanh(x), at most 2 ulp off.
__device__ __forceinline__ float tanh(float x) { return tanhf(x); }

/// 1 / sqrt(x), at most 2 ulp off.
__device__ __forceinline__ float rsqrt(float x) { return ptx::inverseSquareRoot(x); }

/// 1 / (1 + e^-x).
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/// x sigmoid(x).
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

/// x Phi(x) with the exact normal distribution; erfc keeps the relative error small for negative x.
__device__ __forceinline__ float gelu(float x) { return 0.5f * x * erfcf(-0.70710678118654752f * x); }

/// The tanh approximation of gelu (Hendrycks and Gimpel): x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)).
__device__ __forceinline__ float geluTanh(float x) {
  return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
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
