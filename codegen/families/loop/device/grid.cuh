// Columns that any blocks of a grid share. Each block leaves its sums in device memory; the last
// one to arrive adds those of all blocks, whichever it is, in an order that does not depend on it,
// so that results are reproducible bit by bit. For targets without clusters, and wherever blocks
// are better placed by the hardware than by clusters. Only sums: one ticket serves all
// accumulators.
#pragma once

#include "weft/columns.cuh"
#include "weft/grid_memory.cuh"

namespace weft {

/// Device memory of a kernel: `floats` sums of each of `blocks` blocks, for `groups` groups of
/// columns, and who has arrived. A module's own, so one launch of it at a time; counters are zero
/// at load and again after every launch.
template <int groups, int blocks, int floats>
struct alignas(16) GridPartials {
  static constexpr int blocksPerGroup = blocks;
  float of[groups][blocks][floats];
  unsigned arrived[groups];
};

/// Shared memory of a block, as ColumnScratch.
template <int blockColumns, int threadsPerColumn, int width, int results>
struct GridScratch : ColumnScratch<blockColumns, threadsPerColumn, width, results> {
  static constexpr int floats = results * blockColumns * width;
  float share[blockColumns * threadsPerColumn][4];
  bool isLast;
};

/// The sums of all blocks of a group, into scratch.total, by threads that take four floats of every
/// `sharing`-th block each.
template <typename Scratch, typename Partials>
__device__ __forceinline__ void addBlocks(Scratch &scratch, const Partials &partials, int group) {
  constexpr int quads = Scratch::floats / 4,
                sharing = quads < Scratch::threads ? Scratch::threads / quads : 1;
  constexpr int blocks = Partials::blocksPerGroup, inFlight = 8;
  static_assert(Scratch::floats % 4 == 0, "sums are read four at once");
  float *total = &scratch.total[0][0];
  for (int first = 0; first < quads; first += Scratch::threads) {
    const int quad = first + threadIdx.x % (quads < Scratch::threads ? quads : Scratch::threads);
    const int start = quads < Scratch::threads ? threadIdx.x / quads : 0;
    float sum[4] = {};
    for (int block = start; quad < quads && start < sharing && block < blocks;
         block += sharing * inFlight) {
      float values[inFlight][4];
#pragma unroll
      for (int n = 0; n < inFlight; ++n)
        if (block + n * sharing < blocks)
          ptx::loadFromGrid(values[n], &partials.of[group][block + n * sharing][quad * 4]);
#pragma unroll
      for (int n = 0; n < inFlight; ++n)
        if (block + n * sharing < blocks)
#pragma unroll
          for (int e = 0; e < 4; ++e) sum[e] += values[n][e];
    }
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (sharing > 1) scratch.share[threadIdx.x][e] = sum[e];
      else if (quad < quads && start == 0) total[quad * 4 + e] = sum[e];
  }
  ptx::barrier();
  if (sharing == 1) return;
  for (int at = threadIdx.x; at < Scratch::floats; at += Scratch::threads) {
    float sum = scratch.share[at / 4][at % 4];
#pragma unroll
    for (int other = 1; other < sharing; ++other)
      sum += scratch.share[other * quads + at / 4][at % 4];
    total[at] = sum;
  }
  ptx::barrier();
}

/// All accumulators of a block, over the blocks of its group: neighbouring ones of the grid. False
/// for all but the last block of a group to arrive, whose threads receive the sums of their
/// columns. Used once in a kernel.
template <typename Scratch, typename Partials, typename... Values>
__device__ __forceinline__ bool gridColumnSums(Scratch &scratch, Partials &partials,
                                               Values &...values) {
  constexpr int blocks = Partials::blocksPerGroup;
  const int group = blockIdx.x / blocks;
  int which = 0;
  const auto ofBlock = [&](auto &elements) {
    if (which > 0)
      ptx::barrier();  // partial results of the accumulator before this one have been read
    reduceColumnsOfBlock<Sum>(scratch, which++, elements);
  };
  (ofBlock(elementsOf(values)), ...);
  ptx::barrier();
  for (int at = threadIdx.x; at < Scratch::floats; at += Scratch::threads)
    partials.of[group][blockIdx.x % blocks][at] = (&scratch.result[0][0])[at];
  ptx::barrier();
  if (threadIdx.x == 0)
    scratch.isLast = ptx::arrive(&partials.arrived[group], blocks - 1) == blocks - 1;
  ptx::barrier();
  if (!scratch.isLast) return false;
  addBlocks(scratch, partials, group);
  which = 0;
  const int column = threadIdx.x % Scratch::columns;
  const auto read = [&](auto &elements) {
    constexpr int count = sizeof(elements) / sizeof(float);
    const float *from = scratch.total[which++] + column * count;
#pragma unroll
    for (int e = 0; e < count; ++e) elements[e] = from[e];
  };
  (read(elementsOf(values)), ...);
  return true;
}

}  // namespace weft
