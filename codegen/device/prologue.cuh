// Operands of a GEMM that are transformed on load: the ops before it, applied to eight neighbouring elements at a time in flight
// from memory to the tensor cores. For every family whose operands lie in shared memory in chunks of 16 bytes.
//
// The emitted function takes the eight elements and where they lie (OperandPlace), and replaces them by those of the operand, in fp32; here they are
// unpacked, rounded to the operand's type, and become zero beyond the end of k, whatever the function makes of what is read there: the
// other operand is zero, too, but zero times infinity is no zero.
#pragma once

#include "weft/vector.cuh"

namespace weft {

/// The first of eight elements: its batch element, its row of A or column of B, and its k. They are neighbours along k or along the
/// outer axis, and may lie out of bounds.
struct OperandPlace {
  int batch, outer, k;
};

constexpr int operandVector = 8;

/// Where a function reads one element along an axis of `extent` at a place that may be out of bounds: the last one is repeated there.
__device__ __forceinline__ int insideOperand(int place, Offset extent) { return place < extent ? place : int(extent) - 1; }

/// Eight neighbours along an axis of `extent`, `stride` elements apart; any numbers out of bounds, whose results nobody uses. isPacked: without
/// gaps, from an address of 16 bytes on.
template <Offset extent, Offset stride, bool isPacked, typename T>
__device__ __forceinline__ Vec<float, operandVector> alongOperand(const T *from, int first) {
  if constexpr (isPacked && extent % operandVector == 0)
    return loadVector<operandVector>(from + (first < extent ? first : int(extent) - operandVector));
  else
    return loadStrided<operandVector>(from + first * stride, stride, int(extent) - first);
}

/// A tensor and the function that makes the operand of it. T: the element type of the tensor in memory.
template <typename T, typename Function> struct TransformedOf {
  using Element = T;
  const T *elements;
  Function function;
};

/// Eight elements of T that lie in memory as bits: of 16 bits alone.
template <typename T> __device__ __forceinline__ void unpackOperand(float (&x)[operandVector], const unsigned (&words)[4]) {
  static_assert(sizeof(T) == 2);
#pragma unroll
  for (int e = 0; e < operandVector; ++e) x[e] = widen(T{(unsigned short)(words[e / 2] >> e % 2 * 16)});
}

/// The first `count` of eight elements from any address; the rest are zero and not read.
template <typename T> __device__ __forceinline__ void loadOperand(float (&x)[operandVector], const T *from, int count) {
  constexpr int alignment = accessBytes<T, operandVector>();
  if (count == operandVector && reinterpret_cast<unsigned long long>(from) % alignment == 0) {
    const Vec<float, operandVector> values = loadVector<operandVector>(from);
#pragma unroll
    for (int e = 0; e < operandVector; ++e) x[e] = values.at[e];
  } else {
#pragma unroll
    for (int e = 0; e < operandVector; ++e) x[e] = e < count ? widen(from[e]) : 0.0f;
  }
}

/// Makes eight elements of the operand, and those that are beyond the end of k zero.
template <bool isAlongK, Offset kExtent, typename Function>
__device__ __forceinline__ void transformOperand(float (&x)[operandVector], const Function &function, const OperandPlace &at, bool isKWhole) {
  function(x, at);
  if (isKWhole) return;
#pragma unroll
  for (int e = 0; e < operandVector; ++e)
    if (at.k + (isAlongK ? e : 0) >= kExtent) x[e] = 0;
}

}  // namespace weft
