// Rotations of rotary embeddings in few instructions, for results that are stored in 16 bits: the
// angle loses as much as its frequency has lost already, sine and cosine 2^-20.
#pragma once

#include "weft/math.cuh"
#include "weft/sine.cuh"

namespace weft {

/// As rotation() (math.cuh), for positions below 2^22. What is left of the revolutions is one exact
/// product less whole revolutions, rounded once.
__device__ __forceinline__ Rotation shortRotation(int position, float frequency) {
  constexpr float perRevolution = 0.15915494f, revolution = 6.2831853f;  // 1 / (2 pi), 2 pi
  constexpr float wholes = 12582912.0f;  // 1.5 2^23: a sum with it has no fraction left
  const float revolutionsPerStep = frequency * perRevolution;
  const float whole = fmaf(float(position), revolutionsPerStep, wholes) - wholes;
  const float angle = revolution * fmaf(float(position), revolutionsPerStep, -whole);
  return {ptx::cosine(angle), ptx::sine(angle)};
}

/// ratio^exponent, of at most 15: a constant where loops over the exponent are unrolled.
__device__ __forceinline__ float powerOf(double ratio, int exponent) {
  double power = 1;
#pragma unroll
  for (int i = 0; i < 15; ++i)
    if (i < exponent) power *= ratio;
  return static_cast<float>(power);
}

}  // namespace weft
