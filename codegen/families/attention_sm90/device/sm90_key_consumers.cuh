// Consumers that share the query rows of a tile and take its blocks of keys in turn: what each of
// them summed, and how the first joins the sums ("FlashAttention", algorithm 1, lines 10 to 12,
// between partial results instead of blocks).
//
// Thread t of each consumer has the same rows and columns, so that parts are written and read
// thread by thread: four floats of its statistics, then those of its output, 16 bytes of a thread
// beside those of the next.
#pragma once

#include "weft/online_softmax.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_pipeline.cuh"
#include "weft/sm90_shared.cuh"

namespace weft::sm90 {

constexpr int partStride = warpgroup * 16;  // bytes between four floats of a thread and its next

/// Four floats into the block's shared memory; 16-byte aligned.
__device__ __forceinline__ void storeFour(SharedAddress to, float first, float second, float third,
                                          float fourth) {
  asm volatile("st.shared::cta.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(first), "f"(second),
               "f"(third), "f"(fourth)
               : "memory");
}

/// Writes what this thread summed. `part`: the thread's place in the part of its consumer.
template <int count>
__device__ __forceinline__ void storePart(SharedAddress part, const OnlineSoftmax &softmax,
                                          const float (&output)[count]) {
  storeFour(part, softmax.maximum[0], softmax.maximum[1], softmax.sum[0], softmax.sum[1]);
#pragma unroll
  for (int i = 0; i < count; i += 4)
    storeFour(part + (i / 4 + 1) * partStride, output[i], output[i + 1], output[i + 2],
              output[i + 3]);
}

/// Adds what another consumer's thread summed of the same rows: both against the larger maximum.
/// factor: as OnlineSoftmax::add has it.
template <int count>
__device__ __forceinline__ void joinPart(SharedAddress part, float factor, OnlineSoftmax &softmax,
                                         float (&output)[count]) {
  float statistics[4], own[2], others[2];
  loadAccumulators(statistics, part);
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float largest = ptx::maximum(softmax.maximum[row], statistics[row]);
    const float finite = finiteMaximum(largest);
    own[row] = rescaling(softmax.maximum[row], finite, factor);
    others[row] = rescaling(statistics[row], finite, factor);
    softmax.maximum[row] = largest;
    softmax.sum[row] = softmax.sum[row] * own[row] + statistics[2 + row] * others[row];
  }
#pragma unroll
  for (int i = 0; i < count; i += 4) {
    float values[4];
    loadAccumulators(values, part + (i / 4 + 1) * partStride);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      output[i + j] = output[i + j] * own[j / 2] + values[j] * others[j / 2];
  }
}

}  // namespace weft::sm90
