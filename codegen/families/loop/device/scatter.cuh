// Accumulators of rows by index, the gradient of a gather: each warp owns a few rows of the table
// and looks through all indices for them, so that nothing is added by atomics and every sum has one
// order, whatever the blocks do.
//
//   look    each warp walks its own part of the positions and notes those whose index is a row of
//           the block
//   add     rows with few positions by the warp that owns them, 32 columns (vectors) side by side;
//           rows with many by all warps, each with the positions that it noted, whose sums the
//           owner adds in the order of warps
//
// Both take turns where a warp notes more positions than it has room for.
#pragma once

#include "weft/columns.cuh"
#include "weft/warp.cuh"

namespace weft {

/// Shared memory of a block of `warps` warps. `width`: elements of a vector of columns.
template <int warps, int width>
struct ScatterScratch {
  static constexpr int capacity = 512, lanes = 32;
  int position[warps][capacity];          ///< noted by each warp, ascending
  unsigned char row[warps][capacity];     ///< which row of the block each belongs to
  int noted[warps], tally[warps][lanes];  ///< positions of each warp, and of each of its rows
  bool more[warps];                       ///< whether a warp has positions left
  float sums[warps][lanes * width];       ///< of one row, by each warp
};

/// Adds what `load` finds at the noted positions of one row, of one warp's notes, to `sum`, in
/// ascending order.
template <typename Scratch, typename Load, typename Values>
__device__ __forceinline__ void addNoted(const Scratch &scratch, int warp, int row,
                                         const Load &load, Values &sum) {
  constexpr int inFlight = 4;
  for (int first = 0; first < scratch.noted[warp]; first += 32) {
    const int own = first + threadIdx.x % 32;
    unsigned left = ptx::ballot(own < scratch.noted[warp] && scratch.row[warp][own] == row);
    while (left != 0) {
      Values values[inFlight];
      int count = 0;
#pragma unroll
      for (int n = 0; n < inFlight; ++n)
        if (left != 0) {
          values[n] = load(scratch.position[warp][first + ptx::lowestBit(left)]);
          left &= left - 1;
          ++count;
        }
#pragma unroll
      for (int n = 0; n < inFlight; ++n)
        if (n < count)
#pragma unroll
          for (int e = 0; e < int(sizeof(Values) / sizeof(float)); ++e)
            elementsOf(sum)[e] += elementsOf(values[n])[e];
    }
  }
}

/// Notes positions from `next` on whose index lies in [firstRow, firstRow + rows), until `end` or
/// until there is no more room.
template <int rows, typename Scratch, typename IndexAt>
__device__ __forceinline__ int notePositions(Scratch &scratch, int firstRow, int next, int end,
                                             const IndexAt &indexAt) {
  constexpr int inFlight = 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int count = 0;
  for (; next < end && count + 32 * inFlight <= Scratch::capacity; next += 32 * inFlight) {
    int row[inFlight];
#pragma unroll
    for (int n = 0; n < inFlight; ++n) {
      const int position = next + 32 * n + lane;
      row[n] = position < end ? indexAt(position) : -1;
    }
#pragma unroll
    for (int n = 0; n < inFlight; ++n) {
      const bool isOwn = row[n] >= firstRow && row[n] - firstRow < rows;
      const unsigned found = ptx::ballot(isOwn);
      if (isOwn) {
        const int at = count + ptx::countBits(found & ((1u << lane) - 1));
        scratch.position[warp][at] = next + 32 * n + lane;
        scratch.row[warp][at] = (unsigned char)(row[n] - firstRow);
      }
      count += ptx::countBits(found);
    }
  }
  if (lane == 0) scratch.noted[warp] = count, scratch.more[warp] = next < end;
  return next;
}

/// How many positions of each row of the block a warp has noted; lane n counts for row n.
template <typename Scratch>
__device__ __forceinline__ void tallyRows(Scratch &scratch) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int count = 0;
  for (int n = 0; n < scratch.noted[warp]; ++n) count += scratch.row[warp][n] == lane;
  scratch.tally[warp][lane] = count;
}

/// The rows [firstRow, firstRow + 4 warps) of the table, of the columns that `load` and `store`
/// stand for; lane n of every warp stands at the same columns. `indexAt(position)` gives an index,
/// `load(position)` its row, for positions below `positions`.
template <int warps, int width, typename IndexAt, typename Load, typename Store>
__device__ __forceinline__ void scatterRows(ScatterScratch<warps, width> &scratch, int firstRow,
                                            int positions, const IndexAt &indexAt, const Load &load,
                                            const Store &store) {
  constexpr int rowsPerWarp = 4, rows = warps * rowsPerWarp, many = 32;
  static_assert(rows <= 32, "a lane counts for each row of the block");
  using Values = decltype(load(0));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int share = (positions + warps - 1) / warps;
  int next = warp * share;
  const int end = smaller(next + share, positions);
  Values sum[rowsPerWarp] = {};
  for (bool more = true; more;) {
    next = notePositions<rows>(scratch, firstRow, next, end, indexAt);
    ptx::warpBarrier();
    tallyRows(scratch);
    ptx::barrier();
    int total = 0;
    more = false;
    for (int other = 0; other < warps; ++other)
      total += scratch.tally[other][lane], more |= scratch.more[other];
    const unsigned crowded = ptx::ballot(total >= many);
#pragma unroll
    for (int n = 0; n < rowsPerWarp; ++n) {
      const int row = warp * rowsPerWarp + n;
      for (int other = 0; other < warps && !(crowded >> row & 1); ++other)
        if (scratch.tally[other][row] > 0) addNoted(scratch, other, row, load, sum[n]);
    }
    for (unsigned left = crowded; left != 0; left &= left - 1) {
      const int row = ptx::lowestBit(left);
      Values own = {};
      addNoted(scratch, warp, row, load, own);
#pragma unroll
      for (int e = 0; e < width; ++e) scratch.sums[warp][lane * width + e] = elementsOf(own)[e];
      ptx::barrier();
#pragma unroll
      for (int n = 0; n < rowsPerWarp; ++n)
        for (int other = 0; other < warps && row == warp * rowsPerWarp + n; ++other)
#pragma unroll
          for (int e = 0; e < width; ++e)
            elementsOf(sum[n])[e] += scratch.sums[other][lane * width + e];
      ptx::barrier();
    }
    ptx::barrier();  // notes have been read
  }
#pragma unroll
  for (int n = 0; n < rowsPerWarp; ++n) store(firstRow + warp * rowsPerWarp + n, sum[n]);
}

}  // namespace weft
