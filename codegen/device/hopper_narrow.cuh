// Contractions on sm_90a of few rows or columns, which are weights streamed past them, or of so few tiles that starting and ending
// is most of the time: C = A B for every member of a batch, accumulated in fp32. One tile a block; one warp loads slices into as
// many stages as shared memory holds, one warpgroup multiplies them (wgmma) and stores its sums straight from registers.
// What becomes of them is an epilogue: a function of where a thread's sums lie, called before the tile is multiplied, which asks for
// operands and returns a function of the sums, called when they are there (narrow_fragment.cuh).
//
// The longer side of a tile lies along the 64 rows of the instruction, whichever operand that is, the other one along its columns,
// of which there are as few as 8: so a stage is little more than what is streamed. Of a tile of 32 rows the instruction reads 32
// more, which are whatever lies behind them in shared memory: their sums are nobody's.
//
// Blocks of a cluster may share k (splits): all send their sums to the first, which adds them in the order of the blocks.
//
// Operands come by the copy engine, which brings zeros for what is out of bounds.
//
// Kernels of this kind may start while the one before them ends: they let the next one start, and wait for the one before until they
// read or write any tensor. (Asking for what streams to come to L2 meanwhile made them slower, by 2 of 10 us.)
#pragma once

#include "weft/hopper_tiles.cuh"
#include "weft/narrow_fragment.cuh"
#if !defined(WEFT_EMULATE)
#include "weft/hopper_load.cuh"
#include "weft/wgmma_narrow.cuh"
#endif

namespace weft::hopper {

constexpr int tileK = 64;  // of halves in a slice

/// m x n elements of C: one side 32 or 64, the other one 8 to 48 and not longer.
struct NarrowTile {
  int m, n, stages, splits;
};

/// What follows from a product and a narrow tile.
template <Product product, NarrowTile tile> struct NarrowPlan {
  static constexpr bool isAlongM = tile.m >= tile.n;  // rows of the instruction are rows of C
  static constexpr Operand rowOperand = isAlongM ? product.a : product.b, columnOperand = isAlongM ? product.b : product.a;
  static constexpr int rows = isAlongM ? tile.m : tile.n, columns = isAlongM ? tile.n : tile.m;
  static constexpr int threads = warpgroup + 32;
  static constexpr int rowsBytes = rows * rowBytes, columnsBytes = columns * rowBytes, stageBytes = rowsBytes + columnsBytes;
  static constexpr int columnsAt = tile.stages * rowsBytes;  // behind the rows of all stages, the last of which are read beyond
  static constexpr int partsAt = tile.stages * stageBytes, partBytes = rows * columns * 4;
  static constexpr int barriersAt = partsAt + (tile.splits - 1) * partBytes;
  static constexpr int sharedBytes = barriersAt + 8 * (2 * tile.stages + 1);
  static constexpr int slices = int((product.k + tileK - 1) / tileK), mostSlices = (slices + tile.splits - 1) / tile.splits;
  static constexpr bool reusesStages = mostSlices > tile.stages;
  static constexpr int tilesM = int((product.m + tile.m - 1) / tile.m), tilesN = int((product.n + tile.n - 1) / tile.n);
  static constexpr int sums = columns / 2;                   // of a thread
  static constexpr int workingThreads = rows * 2;            // of the warpgroup: a warp has 16 rows
};

/// Shared memory: rows of all stages, columns of all stages, sums of other blocks, barriers.
template <Product product, NarrowTile tile> struct NarrowShared {
  using P = NarrowPlan<product, tile>;
  SharedAddress start;
  __device__ __forceinline__ SharedAddress rows(int stage) const { return start + stage * P::rowsBytes; }
  __device__ __forceinline__ SharedAddress columns(int stage) const { return start + P::columnsAt + stage * P::columnsBytes; }
  /// Four sums of a thread; those of all threads lie side by side.
  __device__ __forceinline__ SharedAddress part(int sender, int group) const {
    return start + P::partsAt + (sender - 1) * P::partBytes + (group * P::workingThreads + threadIdx.x) * 16;
  }
  __device__ __forceinline__ SharedAddress full(int stage) const { return start + P::barriersAt + 8 * stage; }
  __device__ __forceinline__ SharedAddress empty(int stage) const { return full(tile.stages) + 8 * stage; }
  __device__ __forceinline__ SharedAddress partsLanded() const { return full(2 * tile.stages); }
};

/// Where a tile lies: its first row and column of the instruction, its first slice of k.
struct NarrowPlace {
  int rank, batch, row, column, firstSlice, slices;
};
template <Product product, NarrowTile tile> __device__ __forceinline__ NarrowPlace narrowPlace() {
  using P = NarrowPlan<product, tile>;
  constexpr int perBatch = P::tilesM * P::tilesN;
  const int rank = blockIdx.x % tile.splits, index = blockIdx.x / tile.splits, inBatch = index % perBatch;
  const int m = inBatch % P::tilesM * tile.m, n = inBatch / P::tilesM * tile.n, first = rank * P::slices / tile.splits;
  return {rank, index / perBatch, P::isAlongM ? m : n, P::isAlongM ? n : m, first, (rank + 1) * P::slices / tile.splits - first};
}

/// Where the sums of a thread lie. Who has none to finish, those of tiles beyond its rows and blocks that send theirs to the first of the
/// cluster, asks for what lies beside the first element of all, which costs next to nothing.
template <Product product, NarrowTile tile>
__device__ __forceinline__ NarrowFragment<NarrowPlan<product, tile>::sums> narrowFragment(const NarrowPlace &at) {
  const int lane = threadIdx.x % 32;
  if (at.rank > 0 || threadIdx.x >= NarrowPlan<product, tile>::workingThreads) return {0, 0, 0};
  return {at.batch, at.row + int(threadIdx.x) / 32 * 16 + lane / 4, at.column + lane % 4 * 2};
}

/// The epilogue that multiplies all sums by a number, and what any other is.
struct Factor {
  float factor;
  template <int sums> __device__ __forceinline__ Factor operator()(const NarrowFragment<sums> &) const { return *this; }
  template <int sums> __device__ __forceinline__ void operator()(float (&values)[sums]) const {
#pragma unroll
    for (int e = 0; e < sums; ++e) values[e] *= factor;
  }
};
__device__ __forceinline__ Factor narrowEpilogue(float factor) { return {factor}; }
template <typename Epilogue> __device__ __forceinline__ const Epilogue &narrowEpilogue(const Epilogue &epilogue) { return epilogue; }

/// Rounds the elements of a thread and stores those that lie in C.
template <Product product, NarrowTile tile, typename T>
__device__ __forceinline__ void storeNarrow(const float (&values)[NarrowPlan<product, tile>::sums], T *c,
                                            const NarrowFragment<NarrowPlan<product, tile>::sums> &at) {
  T *const member = c + at.batch * product.batchStrideC;
  if constexpr (NarrowPlan<product, tile>::isAlongM)
    storeTileElements<product.m, product.n, product.strideCm, 1, product.isByEngine>(member, values, at);
  else storeTileElements<product.n, product.m, 1, product.strideCm, false>(member, values, at);
}

}  // namespace weft::hopper

#if defined(WEFT_EMULATE)
#include "emulate_hopper_narrow.h"
#else
namespace weft::hopper {

/// Loads the slices of the block; one thread.
template <Product product, NarrowTile tile>
__device__ __forceinline__ void loadNarrow(NarrowShared<product, tile> shared, const NarrowPlace &at, const TensorMap *rows,
                                           const TensorMap *columns) {
  using P = NarrowPlan<product, tile>;
  constexpr bool isBatched = product.batch > 1;
  RingPlace<tile.stages> place{0, 1};
#pragma unroll 1
  for (int slice = 0; slice < at.slices; ++slice) {
    const SharedAddress full = shared.full(place.stage);
    const int k = (at.firstSlice + slice) * tileK;
    if constexpr (P::reusesStages) wait(shared.empty(place.stage), place.parity);
    arriveExpecting(full, P::stageBytes);
    loadSlice<P::rowOperand, P::rows, isBatched>(shared.rows(place.stage), rows, full, at.row, k, at.batch);
    loadSlice<P::columnOperand, P::columns, isBatched>(shared.columns(place.stage), columns, full, at.column, k, at.batch);
    place.advance();
  }
}

/// Multiplies the slices of the block. A stage is handed back when the products that read it have ended.
template <Product product, NarrowTile tile, typename T>
__device__ __forceinline__ void multiplyNarrowTile(float (&sums)[NarrowPlan<product, tile>::sums], NarrowShared<product, tile> shared,
                                                   const NarrowPlace &at) {
  using P = NarrowPlan<product, tile>;
  constexpr bool isOuter = !P::rowOperand.isAlongK();
  constexpr int stepRows = isOuter ? 16 * rowBytes : 32, stepColumns = 32;
  RingPlace<tile.stages> place;
  int previous = -1;
#pragma unroll 1
  for (int slice = 0; slice < at.slices; ++slice) {
    wait(shared.full(place.stage), place.parity);
    const unsigned long long rows = describeOperand(shared.rows(place.stage), panelBytes);
    const unsigned long long columns = describeOperand(shared.columns(place.stage), panelBytes);
    fenceProducts();
#pragma unroll
    for (int step = 0; step < tileK / 16; ++step)
      multiplyNarrow<isOuter>(static_cast<T *>(nullptr), sums, rows + (step * stepRows >> 4), columns + (step * stepColumns >> 4),
                              slice > 0 || step > 0);
    commitProducts();
    waitForProducts<1>();
    if (P::reusesStages && previous >= 0 && threadIdx.x == 0) arrive(shared.empty(previous));
    previous = place.stage;
    place.advance();
  }
  waitForProducts<0>();
}

/// Has the sums of all blocks of the cluster added in the first; the others are done then and get false.
template <Product product, NarrowTile tile>
__device__ __forceinline__ bool joinNarrow(float (&sums)[NarrowPlan<product, tile>::sums], NarrowShared<product, tile> shared, int rank) {
  using P = NarrowPlan<product, tile>;
  constexpr int groups = P::sums / 4;
  if (rank > 0) {
    const SharedAddress barrier = addressInBlock(shared.partsLanded(), 0);
#pragma unroll
    for (int group = 0; group < groups; ++group)
      sendSums(addressInBlock(shared.part(rank, group), 0), barrier, sums[4 * group], sums[4 * group + 1], sums[4 * group + 2],
               sums[4 * group + 3]);
    return false;
  }
  wait(shared.partsLanded(), 0);
#pragma unroll
  for (int sender = 1; sender < tile.splits; ++sender)
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      float part[4];
      loadSums(part, shared.part(sender, group));
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[4 * group + e] += part[e];
    }
  return true;
}

/// The next kernel may have its blocks start as soon as all of this one have, if it is launched so that it waits by itself.
__device__ __forceinline__ void letNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
/// Until the kernels before this one have ended and what they wrote is there; at once where it was not started early.
__device__ __forceinline__ void waitForEarlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// The whole kernel; launched with NarrowPlan::threads and NarrowPlan::sharedBytes, a block or a cluster for every tile. `epilogue`: a
/// number, or a function.
template <typename T, Product product, NarrowTile tile, typename Epilogue>
__device__ __forceinline__ void narrowContraction(const TensorMap *a, const TensorMap *b, T *c, const Epilogue &epilogue) {
  using P = NarrowPlan<product, tile>;
  static_assert(product.a.isByEngine && product.b.isByEngine && P::columnOperand.isAlongK());
  extern __shared__ __align__(1024) unsigned char memory[];
  const NarrowShared<product, tile> shared{sharedAddress(memory)};
  const TensorMap *const rows = P::isAlongM ? a : b, *const columns = P::isAlongM ? b : a;
  letNextStart();
  const NarrowPlace at = narrowPlace<product, tile>();
  if (threadIdx.x == warpgroup) prefetchMap(rows), prefetchMap(columns);
  if (threadIdx.x < 32) {
    for (int stage = threadIdx.x; stage < tile.stages; stage += 32) {
      initializeBarrier(shared.full(stage), 1);
      if (P::reusesStages) initializeBarrier(shared.empty(stage), 1);
    }
    if (threadIdx.x == 0) initializeBarrier(shared.partsLanded(), 1);
    publishBarriers();
  }
  ptx::barrier();
  if constexpr (tile.splits > 1) arriveAtCluster();
  waitForEarlier();
  if (threadIdx.x >= warpgroup) {
    if (threadIdx.x == warpgroup) loadNarrow<product, tile>(shared, at, rows, columns);
    if constexpr (tile.splits > 1) waitForCluster();
    return;
  }
  const NarrowFragment<P::sums> own = narrowFragment<product, tile>(at);
  const auto finish = narrowEpilogue(epilogue)(own);
  if constexpr (tile.splits > 1) {
    waitForCluster();
    if (at.rank == 0 && threadIdx.x == 0) arriveExpecting(shared.partsLanded(), (tile.splits - 1) * P::partBytes);
  }
  float sums[P::sums];
  multiplyNarrowTile<product, tile, T>(sums, shared, at);
  if (threadIdx.x >= P::workingThreads) return;
  if constexpr (tile.splits > 1)
    if (!joinNarrow<product, tile>(sums, shared, at.rank)) return;
  finish(sums);
  storeNarrow<product, tile>(sums, c, own);
}

}  // namespace weft::hopper
#endif
