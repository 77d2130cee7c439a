// The skeleton of contractions from sm_80 on: C = A B for every member of a batch, accumulated in fp32. A block computes one tile:
// its threads copy slices of A and B into a ring of stages in shared memory, ahead of the warps that multiply them (mma.sync);
// each warp has a rectangle of the tile. Sums turn into C (epilogue) and leave through shared memory, in rows.
//
// Operands are contiguous along k or along their outer axis (m or n): blocks of the latter are transposed on their way to
// registers (ldmatrix).
#pragma once

#include "weft/ampere_load.cuh"
#include "weft/fragment.cuh"

namespace weft::ampere {

/// Of a warp, by blocks of 16 x 16.
template <Product product, Tile tile> using Sums = float[Plan<product, tile>::blocksM][Plan<product, tile>::blocksN][8];

/// Where the eight sums of a lane in a block of 16 x 16 lie (fragment.cuh).
struct Fragment {
  int batch, row, column;
};

/// The epilogue that leaves the sums as they are. Any other is a function of the same operands.
struct Unchanged {
  __device__ __forceinline__ void operator()(float (&)[8], const Fragment &) const {}
};

/// Whether an epilogue goes on, once it was called for all blocks of a warp side by side: ampere_softmax.cuh.
template <typename Epilogue> constexpr bool finishesRows = false;

/// Multiplies one stage. The next 16 of k are on their way to registers while 16 are multiplied.
template <Product product, Tile tile, typename T>
__device__ __forceinline__ void multiplyStage(Sums<product, tile> &sums, SharedAddress stage, int warpM, int warpN) {
  using P = Plan<product, tile>;
  unsigned a[2][P::blocksM][4], b[2][P::blocksN][4];
  const auto load = [&](int step) {
#pragma unroll
    for (int i = 0; i < P::blocksM; ++i)
      loadBlock<product.a, tile.m, tile.k, true>(a[step % 2][i], stage, warpM + i * 16, step * 16);
#pragma unroll
    for (int j = 0; j < P::blocksN; ++j)
      loadBlock<product.b, tile.n, tile.k, false>(b[step % 2][j], stage + P::bytesA, warpN + j * 16, step * 16);
  };
  load(0);
#pragma unroll
  for (int step = 0; step < tile.k / 16; ++step) {
    if (step + 1 < tile.k / 16) load(step + 1);
#pragma unroll
    for (int i = 0; i < P::blocksM; ++i) {
#pragma unroll
      for (int j = 0; j < P::blocksN; ++j) {
        float (&s)[8] = sums[i][j];
        const unsigned (&right)[4] = b[step % 2][j];
        multiply(static_cast<T *>(nullptr), s[0], s[1], s[2], s[3], a[step % 2][i], right[0], right[1]);
        multiply(static_cast<T *>(nullptr), s[4], s[5], s[6], s[7], a[step % 2][i], right[2], right[3]);
      }
    }
  }
}

/// Multiplies all slices of a tile: stages - 1 of them are on their way while one is multiplied.
template <Product product, Tile tile, typename T>
__device__ __forceinline__ void multiplyTile(Sums<product, tile> &sums, const T *a, const T *b, const TileStart &at, SharedAddress shared,
                                             int warpM, int warpN) {
  using P = Plan<product, tile>;
  SliceCopy<product.a, tile.m, product.m, product.k, tile.k, P::threads, T> copyA(a + at.batch * product.a.batch, at.m);
  SliceCopy<product.b, tile.n, product.n, product.k, tile.k, P::threads, T> copyB(b + at.batch * product.b.batch, at.n);
  const auto copy = [&](int slice) {
    if (slice < P::slices) {
      const SharedAddress stage = shared + slice % tile.stages * P::stageBytes;
      copyA.copyNext(stage, slice * tile.k);
      copyB.copyNext(stage + P::bytesA, slice * tile.k);
    }
    commitCopies();
  };
#pragma unroll
  for (int slice = 0; slice < tile.stages - 1; ++slice) copy(slice);
#pragma unroll 1
  for (int slice = 0; slice < P::slices; ++slice) {
    waitForCopies<tile.stages - 2>();
    ptx::barrier();                       // the slice has landed, and the one before it has been read by all
    copy(slice + tile.stages - 1);
    multiplyStage<product, tile, T>(sums, shared + slice % tile.stages * P::stageBytes, warpM, warpN);
  }
  waitForCopies<0>();
  ptx::barrier();
}

/// Applies the epilogue to the sums of a warp and puts them into the tile of C in shared memory.
template <Product product, Tile tile, typename T, typename Epilogue>
__device__ __forceinline__ void finishSums(Sums<product, tile> &sums, const TileStart &at, SharedAddress shared, int warpM, int warpN,
                                           const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < P::blocksM; ++i) {
    if constexpr (finishesRows<Epilogue>) {
      const Fragment first{at.batch, at.m + warpM + i * 16 + lane / 4, at.n + warpN + lane % 4 * 2};
#pragma unroll
      for (int j = 0; j < P::blocksN; ++j) epilogue(sums[i][j], Fragment{first.batch, first.row, first.column + j * 16});
      epilogue.template finishRow<product, tile>(sums[i], first);
    }
#pragma unroll
    for (int j = 0; j < P::blocksN; ++j) {
      const int row = warpM + i * 16 + lane / 4, column = warpN + j * 16 + lane % 4 * 2;
      if constexpr (!finishesRows<Epilogue>) epilogue(sums[i][j], Fragment{at.batch, at.m + row, at.n + column});
#pragma unroll
      for (int e = 0; e < 8; e += 2) {
        const int place = placeOf<tile.n / chunk>(row + rowInFragment(e), (column + columnInFragment(e)) / chunk) + lane % 4 * 4;
        storeShared(shared + place, packPair(static_cast<T *>(nullptr), sums[i][j][e], sums[i][j][e + 1]));
      }
    }
  }
}

/// Stores the tile of C: whole chunks of rows that start at multiples of 16 bytes, any others by elements.
template <Product product, Tile tile, typename T>
__device__ __forceinline__ void storeTile(T *c, const TileStart &at, SharedAddress shared) {
  using P = Plan<product, tile>;
  constexpr int chunks = tile.n / chunk, rowsAPass = P::threads / chunks;
  const int firstRow = threadIdx.x / chunks, column = threadIdx.x % chunks * chunk;
  T *to = c + at.batch * product.batchStrideC + (at.m + firstRow) * product.strideCm + at.n + column;
#pragma unroll 4
  for (int row = firstRow; row < tile.m; row += rowsAPass, to += rowsAPass * product.strideCm) {
    if (product.m % tile.m != 0 && at.m + row >= product.m) break;
    const SharedAddress from = shared + placeOf<chunks>(row, column / chunk);
    if (product.isAligned && (product.n % tile.n == 0 || at.n + column + chunk <= product.n)) {
      unsigned words[4];
      loadShared(words, from);
      *reinterpret_cast<Packed<unsigned, 4> *>(to) = {words[0], words[1], words[2], words[3]};
    } else {
      for (int e = 0; e < chunk && at.n + column + e < product.n; ++e) to[e] = T{loadSharedElement(from + e * elementBytes)};
    }
  }
}

/// The whole kernel; launched with Plan::threads and Plan::sharedBytes, a block for every tile of every member of the batch.
template <typename T, Product product, Tile tile, typename Epilogue>
__device__ __forceinline__ void contraction(const T *a, const T *b, T *c, const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  const SharedAddress shared = dynamicShared();
  const TileStart at = tileStart<product, tile>(blockIdx.x);
  const int warp = threadIdx.x / 32, warpM = warp % tile.warpsM * P::warpM, warpN = warp / tile.warpsM * P::warpN;
  Sums<product, tile> sums = {};
  multiplyTile<product, tile>(sums, a, b, at, shared, warpM, warpN);
  finishSums<product, tile, T>(sums, at, shared, warpM, warpN, epilogue);
  ptx::barrier();
  storeTile<product, tile>(c, at, shared);
}

}  // namespace weft::ampere
