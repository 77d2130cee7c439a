// The producer of the GEMM kernel template: k-tiles of A and B, 128 bytes of k each, into the
// circular buffer of stages. Rows that start at multiples of 16 bytes come by TMA; any others by
// the threads of the warpgroup, into the same places.
#pragma once

#include "weft/sm90_barrier.cuh"
#include "weft/sm90_tiles.cuh"
#include "weft/sm90_tma.cuh"

namespace weft::sm90 {

/// Has TMA load rows [outer, outer + rows) of a kTile: one box, or one for every 64 rows.
template <Operand operand, int rows, bool isBatched>
__device__ __forceinline__ void loadKTile(SharedAddress to, const TensorMap *map,
                                          SharedAddress barrier, int outer, int k, int batch) {
#pragma unroll
  for (int subtile = 0; subtile < (operand.isAlongK() ? 1 : rows / 64); ++subtile) {
    const int x = operand.isAlongK() ? k : outer + subtile * 64, y = operand.isAlongK() ? outer : k;
    if constexpr (isBatched) loadTile(to + subtile * subtileBytes, map, barrier, x, y, batch);
    else loadTile(to + subtile * subtileBytes, map, barrier, x, y);
  }
}

/// Loads the part of a k-tile of B that is this block's, for all blocks that share it.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ void loadMulticast(SharedAddress to, const TensorMap *map,
                                              SharedAddress barrier, int outer, int k, int batch) {
  constexpr int rows = tile.n / tile.multicastB;
  constexpr unsigned short blocks = (1 << tile.multicastB) - 1;
  const int rank = multicastRank<tile>();
#pragma unroll
  for (int subtile = 0; subtile < (gemm.b.isAlongK() ? 1 : rows / 64); ++subtile) {
    const int from = outer + rank * rows + subtile * 64, x = gemm.b.isAlongK() ? k : from,
              y = gemm.b.isAlongK() ? from : k;
    const SharedAddress place = to + rank * rows * rowBytes + subtile * subtileBytes;
    if constexpr (gemm.batch > 1) loadTileMulticast(place, map, barrier, blocks, x, y, batch);
    else loadTileMulticast(place, map, barrier, blocks, x, y);
  }
}

/// Neighbouring elements of 16 bytes at any address, in flight: the two aligned accesses that hold
/// them.
struct Unaligned {
  unsigned words[8];
  int shift, count;
};
/// Asks for the first `count` elements of so many bytes, 16 bytes at most; accesses that would hold
/// none of them are left out.
template <int elementBytes>
__device__ __forceinline__ void loadUnaligned(Unaligned &loaded, const void *from, int count) {
  const unsigned long long address = reinterpret_cast<unsigned long long>(from);
  loaded.shift = address % 16, loaded.count = count;
  const Packed<unsigned, 4> *aligned =
      reinterpret_cast<const Packed<unsigned, 4> *>(address - address % 16);
  Packed<unsigned, 4> low{}, high{};
  if (count > 0) low = aligned[0];
  if (loaded.shift + elementBytes * count > 16) high = aligned[1];
#pragma unroll
  for (int w = 0; w < 4; ++w) loaded.words[w] = low.at[w], loaded.words[w + 4] = high.at[w];
}
/// The elements in their places; zero from `count` on.
template <int elementBytes>
__device__ __forceinline__ Packed<unsigned, 4> aligned(Unaligned &loaded) {
  Packed<unsigned, 4> elements;
#pragma unroll
  for (int w = 0; w < 6; ++w)
    loaded.words[w] = loaded.shift & 8 ? loaded.words[w + 2] : loaded.words[w];
#pragma unroll
  for (int w = 0; w < 5; ++w)
    loaded.words[w] = loaded.shift & 4 ? loaded.words[w + 1] : loaded.words[w];
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (elementBytes == 2) {
      const bool isOdd = loaded.shift & 2;
      const unsigned word =
          isOdd ? __funnelshift_r(loaded.words[w], loaded.words[w + 1], 16) : loaded.words[w];
      const int inBounds = loaded.count - 2 * w;
      elements.at[w] = inBounds >= 2 ? word : inBounds == 1 ? word & 0xFFFF : 0;
    } else {
      const unsigned word =
          __funnelshift_r(loaded.words[w], loaded.words[w + 1], loaded.shift % 4 * 8);
      const int inBounds = loaded.count - 4 * w;
      elements.at[w] = inBounds >= 4 ? word : inBounds > 0 ? word & ~(~0u << inBounds * 8) : 0;
    }
  }
  return elements;
}

/// The same k-tile by the threads of a warpgroup, from rows that start anywhere.
template <Operand operand, int rows, int outerExtent, int kExtent, typename T>
__device__ __forceinline__ void copyKTile(unsigned char *to, const T *from, int outer0, int k0,
                                          int thread) {
  constexpr int passes = rows * 8 / warpgroup, unrolled = 4,
                extent = operand.isAlongK() ? kExtent : outerExtent;
  constexpr int bytes = sizeof(T), together = 16 / bytes;
#pragma unroll 1
  for (int first = 0; first < passes; first += unrolled) {
    Unaligned loaded[unrolled];
#pragma unroll
    for (int pass = 0; pass < unrolled; ++pass) {
      const int item = (first + pass) * warpgroup + thread, row = item / 8,
                column = item % 8 * together;
      const int outer = outer0 + (operand.isAlongK() ? row : row / 64 * 64 + column);
      const int k = k0 + (operand.isAlongK() ? column : row % 64);
      const int left = extent - (operand.isAlongK() ? k : outer);
      const bool isRow = operand.isAlongK() ? outer < outerExtent : k < kExtent;
      const int count = !isRow || left < 0 ? 0 : smaller(left, together);
      loadUnaligned<bytes>(loaded[pass], from + outer * operand.outer + k * operand.k, count);
    }
#pragma unroll
    for (int pass = 0; pass < unrolled; ++pass) {
      const int item = (first + pass) * warpgroup + thread, row = item / 8;
      *reinterpret_cast<Packed<unsigned, 4> *>(to + swizzled(row, item % 8)) =
          aligned<bytes>(loaded[pass]);
    }
  }
}

/// Loads a range of the k-tiles of one tile. All threads of the warpgroup come here if any operand
/// is copied by threads, otherwise the first alone. memory: the block's, for what threads copy.
template <GemmProblem gemm, Tile tile, typename A, typename B>
__device__ __forceinline__ void loadKTiles(Shared<gemm, tile> shared,
                                           PipelineState<tile.stages> &state, Tensor<const A> a,
                                           Tensor<const B> b, unsigned char *memory,
                                           const TileStart &at, KTileRange kTiles, int thread) {
  using P = TileConfig<gemm, tile>;
  constexpr bool isBatched = gemm.batch > 1;
  constexpr int engineBytes = (gemm.a.usesTma ? P::bytesA : 0) + (gemm.b.usesTma ? P::bytesB : 0);
#pragma unroll 1
  for (int kTile = kTiles.first; kTile < kTiles.first + kTiles.count; ++kTile) {
    const SharedAddress full = shared.full(state.stage);
    wait(shared.empty(state.stage), state.parity);
    if (engineBytes > 0 && thread == 0) {
      arriveExpecting(full, engineBytes);
      if constexpr (gemm.a.usesTma)
        loadKTile<gemm.a, tile.m, isBatched>(shared.a(state.stage), a.map, full, at.m,
                                             kTile * P::tileK, at.batch);
      if constexpr (tile.multicastB > 1)
        loadMulticast<gemm, tile>(shared.b(state.stage), b.map, full, at.n, kTile * P::tileK,
                                  at.batch);
      else if constexpr (gemm.b.usesTma)
        loadKTile<gemm.b, tile.n, isBatched>(shared.b(state.stage), b.map, full, at.n,
                                             kTile * P::tileK, at.batch);
    }
    if constexpr (!P::areAllTma) {
      unsigned char *stage = memory + state.stage * P::stageBytes;
      if constexpr (!gemm.a.usesTma)
        copyKTile<gemm.a, tile.m, gemm.m, gemm.k>(stage, a.elements + at.batch * gemm.a.batch, at.m,
                                                  kTile * P::tileK, thread);
      if constexpr (!gemm.b.usesTma)
        copyKTile<gemm.b, tile.n, gemm.n, gemm.k>(stage + P::bytesA,
                                                  b.elements + at.batch * gemm.b.batch, at.n,
                                                  kTile * P::tileK, thread);
      fenceForAsync();
      arrive(full);
    }
    state.advance();
  }
}

/// Loads all k-tiles of all tiles of this block, by the threads that loadKTiles takes.
template <GemmProblem gemm, Tile tile, typename A, typename B, typename Tokens = AllTokens>
__device__ __forceinline__ void produce(Shared<gemm, tile> shared, Tensor<const A> a,
                                        Tensor<const B> b, unsigned char *memory,
                                        const Tokens &tokens = {}) {
  const int thread = threadIdx.x % warpgroup;
  PipelineState<tile.stages> state{0, 1};
  const int tiles = countTiles<gemm, tile>(tokens);
  for (int index = firstTile<tile>(); index < tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<gemm, tile>(tokens, index);
    const KTileRange kTiles = kTilesOfTile<gemm, tile>(tokens, index);
    loadKTiles<gemm, tile>(shared, state, a, b, memory, at, kTiles, thread);
  }
}

}  // namespace weft::sm90
