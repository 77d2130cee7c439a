// What kernels of fused attention on sm_90a share: boxes of one head of a tensor, in panels of 64
// columns, and the places of pipelines that are passed together.
#pragma once

#include "weft/sm90_barrier.cuh"
#include "weft/sm90_tma.cuh"

namespace weft::sm90 {

/// Where a head lies in a tensor's map: coordinate 2 + d of a box is head / divisors[d] %
/// extents[d].
struct HeadMap {
  int dimensions;                         ///< of the map: two and one for each of these
  int divisors[3] = {}, extents[3] = {};  ///< of as many dimensions; zero behind them
};

/// Tiles of 64 columns.
__device__ __forceinline__ constexpr int panelsOf(int columns) { return (columns + 63) / 64; }

/// Coordinate 2 + d of a head's boxes; there are no divisors behind the map's dimensions.
template <HeadMap map, int d>
__device__ __forceinline__ int headCoordinate(int head) {
  if constexpr (d + 2 < map.dimensions) return head / map.divisors[d] % map.extents[d];
  else return 0;
}
/// A box of rows from `row` and columns from `column` on, of one head.
template <HeadMap map>
__device__ __forceinline__ void loadHead(SharedAddress to, const TensorMap *from,
                                         SharedAddress barrier, int column, int row, int head) {
  const int at[5] = {column, row, headCoordinate<map, 0>(head), headCoordinate<map, 1>(head),
                     headCoordinate<map, 2>(head)};
  if constexpr (map.dimensions == 2) loadTile(to, from, barrier, column, row);
  else loadBox<map.dimensions>(to, from, barrier, at);
}
/// The same of a map that has pages as one dimension more: rows are those of a page. One that is
/// outside loads as zeros.
template <HeadMap map>
__device__ __forceinline__ void loadHeadOfPage(SharedAddress to, const TensorMap *from,
                                               SharedAddress barrier, int column, int row, int head,
                                               int page) {
  int at[5] = {column, row, headCoordinate<map, 0>(head), headCoordinate<map, 1>(head),
               headCoordinate<map, 2>(head)};
  at[map.dimensions] = page;
  loadBox<map.dimensions + 1>(to, from, barrier, at);
}
template <HeadMap map>
__device__ __forceinline__ void storeHead(const TensorMap *to, SharedAddress from, int column,
                                          int row, int head) {
  const int at[5] = {column, row, headCoordinate<map, 0>(head), headCoordinate<map, 1>(head),
                     headCoordinate<map, 2>(head)};
  if constexpr (map.dimensions == 2) storeTile(to, from, column, row);
  else storeBox<map.dimensions>(to, from, at);
}

/// The stage of pass `count` through a pipeline, whichever side counts: one number in place of a
/// PipelineState, which pipelines that are passed together share.
template <int stages>
struct StageOfPass {
  int stage, parity;
  __device__ __forceinline__ explicit StageOfPass(unsigned count)
      : stage(int(count % stages)), parity(int(count / stages % 2)) {}
};

/// Keeps the compiler from reading accumulators before the wait in front of it.
template <int count>
__device__ __forceinline__ void fenceAccumulators(float (&accumulators)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(accumulators[i])::"memory");
}

}  // namespace weft::sm90
