// Reductions of columns: neighbouring threads hold neighbouring columns (vectors of them), and the
// threads that share a column lie `columns` apart, in one warp, in one block, or in all blocks of a
// cluster. Every thread receives the result of its columns. Partial results are added in the order
// of threads, warps and blocks, so they are reproducible bit by bit.
#pragma once

#include "weft/cluster.cuh"
#include "weft/reduce.cuh"
#include "weft/vector.cuh"

namespace weft {

/// The floats of an accumulator: one, or one for each element of a vector.
__device__ __forceinline__ float (&elementsOf(float &value))[1] {
  return reinterpret_cast<float(&)[1]>(value);
}
template <int N>
__device__ __forceinline__ float (&elementsOf(Vec<float, N> &values))[N] {
  return values.at;
}

/// Over the lanes of a warp that are equal modulo `columns`, a power of two; all lanes take part.
template <typename Operation, int columns>
__device__ __forceinline__ float reduceAcrossLanes(float value) {
#pragma unroll
  for (int mask = columns; mask < 32; mask *= 2)
    value = Operation::apply(value, ptx::shuffleXor(value, mask));
  return value;
}
template <typename Operation, int columns, int N>
__device__ __forceinline__ void reduceAcrossLanes(float (&values)[N]) {
#pragma unroll
  for (int e = 0; e < N; ++e) values[e] = reduceAcrossLanes<Operation, columns>(values[e]);
}

/// Shared memory of a block of blockColumns x threadsPerColumn threads that reduces `results`
/// accumulators of up to `width` elements: a partial result of each warp, or of each thread where a
/// warp is no wider than the columns, then the block's.
template <int blockColumns, int threadsPerColumn, int width, int results>
struct ColumnScratch {
  static constexpr int columns = blockColumns, threads = blockColumns * threadsPerColumn;
  static constexpr int stride =
      columns < 32 ? 32 : columns;  // threads that leave one partial result a column
  float partial[threads / stride][columns * width];
  float result[results][columns * width], total[results][columns * width];
};

/// One accumulator over the threads of a block; the result lies in scratch.result[which] once the
/// caller has synchronized.
template <typename Operation, typename Scratch, int N>
__device__ __forceinline__ void reduceColumnsOfBlock(Scratch &scratch, int which,
                                                     float (&values)[N]) {
  constexpr int columns = Scratch::columns, parts = Scratch::threads / Scratch::stride;
  const int column = threadIdx.x % columns;
  if constexpr (columns < 32) reduceAcrossLanes<Operation, columns>(values);
  if (threadIdx.x % Scratch::stride < columns) {
#pragma unroll
    for (int e = 0; e < N; ++e)
      scratch.partial[threadIdx.x / Scratch::stride][column * N + e] = values[e];
  }
  ptx::barrier();
  for (int at = threadIdx.x; at < columns * N; at += Scratch::threads) {
    float value = scratch.partial[0][at];
#pragma unroll
    for (int part = 1; part < parts; ++part)
      value = Operation::apply(value, scratch.partial[part][at]);
    scratch.result[which][at] = value;
  }
}

/// The results of every block of the cluster, in the order of blocks.
template <typename Operation, int blocks, typename Scratch, int N>
__device__ __forceinline__ void reduceColumnsOfCluster(Scratch &scratch, int which,
                                                       const float (&)[N]) {
  for (int at = threadIdx.x; at < Scratch::columns * N; at += Scratch::threads) {
    float ofBlock[blocks];
#pragma unroll
    for (int rank = 0; rank < blocks; ++rank)
      ofBlock[rank] = ptx::loadFromBlock(&scratch.result[which][at], rank);
    float value = ofBlock[0];
#pragma unroll
    for (int rank = 1; rank < blocks; ++rank) value = Operation::apply(value, ofBlock[rank]);
    scratch.total[which][at] = value;
  }
}

/// All accumulators of a block of threads, over `blocks` blocks; `scratch` is used once in a
/// kernel.
template <typename Operation, int blocks, typename Scratch, typename... Values>
__device__ __forceinline__ void reduceColumns(Scratch &scratch, Values &...values) {
  int which = 0;
  const auto ofBlock = [&](auto &elements) {
    if (which > 0)
      ptx::barrier();  // partial results of the accumulator before this one have been read
    reduceColumnsOfBlock<Operation>(scratch, which++, elements);
  };
  (ofBlock(elementsOf(values)), ...);
  if constexpr (blocks > 1) {
    ptx::clusterBarrier();
    which = 0;
    (reduceColumnsOfCluster<Operation, blocks>(scratch, which++, elementsOf(values)), ...);
    ptx::clusterBarrier();  // no block ends, nor writes its results again, while others read them
  } else {
    ptx::barrier();
  }
  which = 0;
  const int column = threadIdx.x % Scratch::columns;
  const auto read = [&](auto &elements) {
    constexpr int count = sizeof(elements) / sizeof(float);
    const float *from = (blocks > 1 ? scratch.total : scratch.result)[which++] + column * count;
#pragma unroll
    for (int e = 0; e < count; ++e) elements[e] = from[e];
  };
  (read(elementsOf(values)), ...);
}

template <int columns, typename... Values>
__device__ __forceinline__ void warpColumnSums(Values &...values) {
  (reduceAcrossLanes<Sum, columns>(elementsOf(values)), ...);
}
template <int columns, typename... Values>
__device__ __forceinline__ void warpColumnMaxima(Values &...values) {
  (reduceAcrossLanes<Maximum, columns>(elementsOf(values)), ...);
}
template <typename Scratch, typename... Values>
__device__ __forceinline__ void blockColumnSums(Scratch &scratch, Values &...values) {
  reduceColumns<Sum, 1>(scratch, values...);
}
template <typename Scratch, typename... Values>
__device__ __forceinline__ void blockColumnMaxima(Scratch &scratch, Values &...values) {
  reduceColumns<Maximum, 1>(scratch, values...);
}
template <int blocks, typename Scratch, typename... Values>
__device__ __forceinline__ void clusterColumnSums(Scratch &scratch, Values &...values) {
  reduceColumns<Sum, blocks>(scratch, values...);
}
template <int blocks, typename Scratch, typename... Values>
__device__ __forceinline__ void clusterColumnMaxima(Scratch &scratch, Values &...values) {
  reduceColumns<Maximum, blocks>(scratch, values...);
}

}  // namespace weft
