// Softmax along rows whose scores come in blocks: running maxima, sums of exponentials against
// them, and the factors of what was summed against older maxima ("Online normalizer calculation for
// softmax", Milakov and Gimelshein; "FlashAttention", algorithm 1).
//
// A thread has two rows of a warpgroup's accumulators: of eight neighbouring columns the pairs
// [4 j], [4 j + 1] of its first row and [4 j + 2], [4 j + 3] of its second; four neighbouring lanes
// share a row. Sums are those of the lane's own columns until rowSums() joins them.
#pragma once

#include "weft/pack.cuh"
#include "weft/types.cuh"

namespace weft {

/// What a maximum counts as in differences: a row without any finite score has zeros.
__device__ __forceinline__ float finiteMaximum(float maximum) {
  return maximum == negativeInfinity ? 0.0f : maximum;
}

/// What sums of exponentials against an older maximum are worth against a larger one or the same:
/// 2^(factor * (older - largest)), with largest from finiteMaximum(). The difference comes first,
/// so that a maximum that stays leaves them as they are: one of two products would be rounded,
/// which at scores of 6e4 changes the weight of older blocks by up to 2^(2^-8) with every block.
__device__ __forceinline__ float rescaling(float older, float largest, float factor) {
  return ptx::exp2((older - largest) * factor);
}

struct OnlineSoftmax {
  float maximum[2] = {negativeInfinity, negativeInfinity}, sum[2] = {0, 0};

  /// Turns scores into exponentials 2^(factor * (score - maximum)), and gives the factors of what
  /// older exponentials summed to. factor is positive. A row without any finite score has zeros.
  template <int count>
  __device__ __forceinline__ void add(float (&scores)[count], float factor, float (&older)[2]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float largest = maximum[row];
#pragma unroll
      for (int i = 2 * row; i < count; i += 4)
        largest = ptx::maximum(largest, ptx::maximum(scores[i], scores[i + 1]));
      largest = ptx::maximum(largest, ptx::shuffleXor(largest, 1));
      largest = ptx::maximum(largest, ptx::shuffleXor(largest, 2));
      const float finite = finiteMaximum(largest), offset = finite * factor;
      older[row] = rescaling(maximum[row], finite, factor);
      maximum[row] = largest;
      float total = 0;
#pragma unroll
      for (int i = 2 * row; i < count; i += 4) {
        scores[i] = ptx::exp2(scores[i] * factor - offset);
        scores[i + 1] = ptx::exp2(scores[i + 1] * factor - offset);
        total += scores[i] + scores[i + 1];
      }
      sum[row] = sum[row] * older[row] + total;
    }
  }

  /// The sums of whole rows.
  __device__ __forceinline__ void joinSums() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sum[row] += ptx::shuffleXor(sum[row], 1);
      sum[row] += ptx::shuffleXor(sum[row], 2);
    }
  }
  /// What sums of exponentials times values become: zero where a row has no finite score.
  __device__ __forceinline__ float scaling(int row) const {
    return sum[row] == 0 ? 0.0f : 1.0f / sum[row];
  }
  /// log(sum(exp(score))), of `factor` = log2(e) times the scale of scores.
  __device__ __forceinline__ float logSum(int row, float factor) const {
    constexpr float ln2 = 0.693147180559945f;
    return sum[row] == 0 ? negativeInfinity : (maximum[row] * factor + log2f(sum[row])) * ln2;
  }
};

/// Exponentials as an operand of WGMMA or mma in registers: words of pairs, four for each 16
/// columns.
template <typename T, int count>
__device__ __forceinline__ void packExponentials(unsigned (&words)[count / 8][4],
                                                 const float (&exponentials)[count]) {
#pragma unroll
  for (int step = 0; step < count / 8; ++step)
#pragma unroll
    for (int w = 0; w < 4; ++w)
      words[step][w] = packPair(static_cast<T *>(nullptr), exponentials[8 * step + 2 * w],
                                exponentials[8 * step + 2 * w + 1]);
}

}  // namespace weft
