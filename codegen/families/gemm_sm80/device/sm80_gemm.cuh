// The kernel template of contractions from sm_80 on: C = A B for every batch element, accumulated
// in fp32. A block computes one tile: its threads copy k-tiles of A and B into a circular buffer of
// stages in shared memory, ahead of the warps that multiply them (mma.sync); each warp has a
// rectangle of the tile. Accumulators turn into C (epilogue) and leave through shared memory, in
// rows.
//
// Operands are contiguous along k or along their outer axis (m or n): blocks of the latter are
// transposed on the way to registers (ldmatrix).
#pragma once

#include "weft/fragment.cuh"
#include "weft/pack.cuh"
#include "weft/sm80_load.cuh"

namespace weft::sm80 {

/// Of a warp, by blocks of 16 x 16.
template <GemmProblem gemm, Tile tile>
using Accumulators = float[TileConfig<gemm, tile>::blocksM][TileConfig<gemm, tile>::blocksN][8];

/// Where the eight accumulators of a lane in a block of 16 x 16 lie (fragment.cuh).
struct Fragment {
  int batch, row, column;
};

/// The epilogue that leaves the accumulators as they are. Any other is a function of the same
/// operands.
struct Unchanged {
  __device__ __forceinline__ void operator()(float (&)[8], const Fragment &) const {}
};

/// That an operand is read as it lies in memory; else a function (sm80_prologue.cuh).
struct NoTransform {};

/// Which tiles hold nothing but rows (columns) of C behind the last packed token: nobody loads or
/// multiplies for them, since their epilogue gives zeros whatever it is given.
struct AllTokens {
  __device__ __forceinline__ bool isUnused(const TileStart &) const { return false; }
};
struct RowTokens {
  int count;
  __device__ __forceinline__ bool isUnused(const TileStart &at) const { return at.m >= count; }
};
struct ColumnTokens {
  int count;
  __device__ __forceinline__ bool isUnused(const TileStart &at) const { return at.n >= count; }
};
/// Where k are packed tokens: how many there are. Both operands are zero behind the last one.
struct SummedTokens {
  int count;
  __device__ __forceinline__ bool isUnused(const TileStart &) const { return false; }
};
/// The k-tiles that tiles are the sums of.
template <GemmProblem gemm, Tile tile, typename Tokens>
__device__ __forceinline__ int countKTiles(const Tokens &) {
  return TileConfig<gemm, tile>::kTiles;
}
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ int countKTiles(const SummedTokens &tokens) {
  return (smaller(larger(tokens.count, 0), int(gemm.k)) + tile.k - 1) / tile.k;
}
/// Nothing reads what lies behind them.
struct UnreadRowTokens : RowTokens {};
struct UnreadColumnTokens : ColumnTokens {};
template <typename Tokens>
constexpr bool areUnread = false;
template <>
constexpr bool areUnread<UnreadRowTokens> = true;
template <>
constexpr bool areUnread<UnreadColumnTokens> = true;

/// The arguments of the kernel templates: elements of tensors, and functions. Emitted text names
/// those that its kernel has, as Args{.a = x, .b = w, .c = y, .epilogue = epilogueOp}.
template <typename A, typename B, typename C, typename TransformA = NoTransform,
          typename TransformB = NoTransform, typename Tokens = AllTokens,
          typename Epilogue = Unchanged>
struct Args {
  const A *a;
  const B *b;
  C *c;
  TransformA transformA = {};  // makes the elements of A of those in memory
  TransformB transformB = {};
  Tokens tokens = {};      // how many rows or columns of C, or how much of k, are tokens
  Epilogue epilogue = {};  // what becomes of the accumulators
};

/// Whether an epilogue goes on, once it was called for all blocks of a warp side by side:
/// sm80_softmax.cuh.
template <typename Epilogue>
constexpr bool isRowEpilogue = false;

/// Multiplies one stage. The next 16 of k are on the way to registers while 16 are multiplied.
template <GemmProblem gemm, Tile tile, typename T>
__device__ __forceinline__ void multiplyStage(Accumulators<gemm, tile> &accumulators,
                                              SharedAddress stage, int warpM, int warpN) {
  using P = TileConfig<gemm, tile>;
  unsigned a[2][P::blocksM][4], b[2][P::blocksN][4];
  const auto load = [&](int step) {
#pragma unroll
    for (int i = 0; i < P::blocksM; ++i)
      loadBlock<gemm.a, tile.m, tile.k, true>(a[step % 2][i], stage, warpM + i * 16, step * 16);
#pragma unroll
    for (int j = 0; j < P::blocksN; ++j)
      loadBlock<gemm.b, tile.n, tile.k, false>(b[step % 2][j], stage + P::bytesA, warpN + j * 16,
                                               step * 16);
  };
  load(0);
#pragma unroll
  for (int step = 0; step < tile.k / 16; ++step) {
    if (step + 1 < tile.k / 16) load(step + 1);
#pragma unroll
    for (int i = 0; i < P::blocksM; ++i) {
#pragma unroll
      for (int j = 0; j < P::blocksN; ++j) {
        float(&s)[8] = accumulators[i][j];
        const unsigned(&right)[4] = b[step % 2][j];
        multiply(static_cast<T *>(nullptr), s[0], s[1], s[2], s[3], a[step % 2][i], right[0],
                 right[1]);
        multiply(static_cast<T *>(nullptr), s[4], s[5], s[6], s[7], a[step % 2][i], right[2],
                 right[3]);
      }
    }
  }
}

template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ void clear(Accumulators<gemm, tile> &accumulators) {
#pragma unroll
  for (int i = 0; i < TileConfig<gemm, tile>::blocksM; ++i)
#pragma unroll
    for (int j = 0; j < TileConfig<gemm, tile>::blocksN; ++j)
#pragma unroll
      for (int e = 0; e < 8; ++e) accumulators[i][j][e] = 0;
}

/// Multiplies so many k-tiles of a tile: stages - 1 of them are in flight while one is multiplied.
template <GemmProblem gemm, Tile tile, typename T>
__device__ __forceinline__ void multiplyTile(Accumulators<gemm, tile> &accumulators, const T *a,
                                             const T *b, const TileStart &at, int kTiles,
                                             SharedAddress shared, int warpM, int warpN) {
  using P = TileConfig<gemm, tile>;
  KTileCopy<gemm.a, tile.m, gemm.m, gemm.k, tile.k, P::threads, T> copyA(
      a + at.batch * gemm.a.batch, at.m);
  KTileCopy<gemm.b, tile.n, gemm.n, gemm.k, tile.k, P::threads, T> copyB(
      b + at.batch * gemm.b.batch, at.n);
  const auto copy = [&](int kTile) {
    if (kTile < kTiles) {
      const SharedAddress stage = shared + kTile % tile.stages * P::stageBytes;
      copyA.copyNext(stage, kTile * tile.k);
      copyB.copyNext(stage + P::bytesA, kTile * tile.k);
    }
    commitCopies();
  };
#pragma unroll
  for (int kTile = 0; kTile < tile.stages - 1; ++kTile) copy(kTile);
#pragma unroll 1
  for (int kTile = 0; kTile < kTiles; ++kTile) {
    waitForCopies<tile.stages - 2>();
    ptx::barrier();  // the k-tile has landed, and the one before it has been read by all
    copy(kTile + tile.stages - 1);
    multiplyStage<gemm, tile, T>(accumulators, shared + kTile % tile.stages * P::stageBytes, warpM,
                                 warpN);
  }
  waitForCopies<0>();
  ptx::barrier();
}

/// Applies the epilogue to the accumulators of a warp and puts them into the tile of C in shared
/// memory.
template <GemmProblem gemm, Tile tile, typename T, typename Epilogue>
__device__ __forceinline__ void runEpilogue(Accumulators<gemm, tile> &accumulators,
                                            const TileStart &at, SharedAddress shared, int warpM,
                                            int warpN, const Epilogue &epilogue) {
  using P = TileConfig<gemm, tile>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < P::blocksM; ++i) {
    if constexpr (isRowEpilogue<Epilogue>) {
      const Fragment first{at.batch, at.m + warpM + i * 16 + lane / 4, at.n + warpN + lane % 4 * 2};
#pragma unroll
      for (int j = 0; j < P::blocksN; ++j)
        epilogue(accumulators[i][j], Fragment{first.batch, first.row, first.column + j * 16});
      epilogue.template runRowEpilogue<gemm, tile>(accumulators[i], first);
    }
#pragma unroll
    for (int j = 0; j < P::blocksN; ++j) {
      const int row = warpM + i * 16 + lane / 4, column = warpN + j * 16 + lane % 4 * 2;
      if constexpr (!isRowEpilogue<Epilogue>)
        epilogue(accumulators[i][j], Fragment{at.batch, at.m + row, at.n + column});
#pragma unroll
      for (int e = 0; e < 8; e += 2) {
        const int place = placeOf<tile.n / chunk>(row + rowInFragment(e),
                                                  (column + columnInFragment(e)) / chunk) +
                          lane % 4 * 4;
        storeShared(shared + place, packPair(static_cast<T *>(nullptr), accumulators[i][j][e],
                                             accumulators[i][j][e + 1]));
      }
    }
  }
}

/// Stores the tile of C: whole chunks of rows that start at multiples of 16 bytes, any others by
/// elements.
template <GemmProblem gemm, Tile tile, typename T>
__device__ __forceinline__ void storeTile(T *c, const TileStart &at, SharedAddress shared) {
  using P = TileConfig<gemm, tile>;
  constexpr int chunks = tile.n / chunk, rowsAPass = P::threads / chunks;
  const int firstRow = threadIdx.x / chunks, column = threadIdx.x % chunks * chunk;
  T *to = c + at.batch * gemm.batchStrideC + (at.m + firstRow) * gemm.strideCm + at.n + column;
#pragma unroll 4
  for (int row = firstRow; row < tile.m; row += rowsAPass, to += rowsAPass * gemm.strideCm) {
    if (gemm.m % tile.m != 0 && at.m + row >= gemm.m) break;
    const SharedAddress from = shared + placeOf<chunks>(row, column / chunk);
    if (gemm.isAligned && (gemm.n % tile.n == 0 || at.n + column + chunk <= gemm.n)) {
      unsigned words[4];
      loadShared(words, from);
      *reinterpret_cast<Packed<unsigned, 4> *>(to) = {words[0], words[1], words[2], words[3]};
    } else {
      for (int e = 0; e < chunk && at.n + column + e < gemm.n; ++e)
        to[e] = T{loadSharedElement(from + e * elementBytes)};
    }
  }
}

/// The whole kernel; launched with TileConfig::threads and TileConfig::sharedBytes, a block for
/// every tile of every batch element.
template <typename T, GemmProblem gemm, Tile tile, typename Tokens, typename Epilogue>
__device__ __forceinline__ void runGemm(
    const Args<T, T, T, NoTransform, NoTransform, Tokens, Epilogue> &args) {
  using P = TileConfig<gemm, tile>;
  const SharedAddress shared = dynamicShared();
  const TileStart at = tileStart<gemm, tile>(blockIdx.x);
  const int warp = threadIdx.x / 32, warpM = warp % tile.warpsM * P::warpM,
            warpN = warp / tile.warpsM * P::warpN;
  if constexpr (areUnread<Tokens>)
    if (args.tokens.isUnused(at)) return;
  Accumulators<gemm, tile> accumulators;  // of an unused tile anything: zeros would take registers
  if (!args.tokens.isUnused(at)) {
    clear<gemm, tile>(accumulators);
    multiplyTile<gemm, tile>(accumulators, args.a, args.b, at, countKTiles<gemm, tile>(args.tokens),
                             shared, warpM, warpN);
  }
  runEpilogue<gemm, tile, T>(accumulators, at, shared, warpM, warpN, args.epilogue);
  ptx::barrier();
  storeTile<gemm, tile>(args.c, at, shared);
}

}  // namespace weft::sm80
