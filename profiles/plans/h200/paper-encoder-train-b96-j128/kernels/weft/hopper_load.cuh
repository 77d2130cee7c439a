// The producer of the contraction skeleton: slices of A and B, 128 bytes of k each, into the ring of stages. Rows that start at
// multiples of 16 bytes come by the copy engine; any others by the threads of the warpgroup, into the same places.
#pragma once

#include "weft/hopper_tiles.cuh"

namespace weft::hopper {

/// Has the copy engine load rows [outer, outer + rows) of a slice: one box, or one for every 64 rows.
template <Operand operand, int rows, bool isBatched>
__device__ __forceinline__ void loadSlice(SharedAddress to, const TensorMap *map, SharedAddress barrier, int outer, int k,
                                          int batch) {
#pragma unroll
  for (int panel = 0; panel < (operand.isAlongK() ? 1 : rows / 64); ++panel) {
    const int x = operand.isAlongK() ? k : outer + panel * 64, y = operand.isAlongK() ? outer : k;
    if constexpr (isBatched) loadTile(to + panel * panelBytes, map, barrier, x, y, batch);
    else loadTile(to + panel * panelBytes, map, barrier, x, y);
  }
}

/// Loads the part of a slice of B that is this block's, for all blocks that share it.
template <Product product, Tile tile> __device__ __forceinline__ void loadShared(SharedAddress to, const TensorMap *map, SharedAddress barrier, int outer, int k, int batch) {
  constexpr int rows = tile.n / tile.sharers;
  constexpr unsigned short blocks = (1 << tile.sharers) - 1;
  const int rank = rankAmongSharers<tile>();
#pragma unroll
  for (int panel = 0; panel < (product.b.isAlongK() ? 1 : rows / 64); ++panel) {
    const int from = outer + rank * rows + panel * 64, x = product.b.isAlongK() ? k : from, y = product.b.isAlongK() ? from : k;
    const SharedAddress place = to + rank * rows * rowBytes + panel * panelBytes;
    if constexpr (product.batch > 1) loadTileForBlocks(place, map, barrier, blocks, x, y, batch);
    else loadTileForBlocks(place, map, barrier, blocks, x, y);
  }
}

/// Neighbouring elements of 16 bytes at any address, on their way: the two aligned accesses that hold them.
struct Unaligned {
  unsigned words[8];
  int shift, count;
};
/// Asks for the first `count` elements of so many bytes, 16 bytes at most; accesses that would hold none of them are left out.
template <int elementBytes>
__device__ __forceinline__ void loadUnaligned(Unaligned &loaded, const void *from, int count) {
  const unsigned long long address = reinterpret_cast<unsigned long long>(from);
  loaded.shift = address % 16, loaded.count = count;
  const Packed<unsigned, 4> *aligned = reinterpret_cast<const Packed<unsigned, 4> *>(address - address % 16);
  Packed<unsigned, 4> low{}, high{};
  if (count > 0) low = aligned[0];
  if (loaded.shift + elementBytes * count > 16) high = aligned[1];
#pragma unroll
  for (int w = 0; w < 4; ++w) loaded.words[w] = low.at[w], loaded.words[w + 4] = high.at[w];
}
/// The elements in their places; zero from `count` on.
template <int elementBytes> __device__ __forceinline__ Packed<unsigned, 4> aligned(Unaligned &loaded) {
  Packed<unsigned, 4> elements;
#pragma unroll
  for (int w = 0; w < 6; ++w) loaded.words[w] = loaded.shift & 8 ? loaded.words[w + 2] : loaded.words[w];
#pragma unroll
  for (int w = 0; w < 5; ++w) loaded.words[w] = loaded.shift & 4 ? loaded.words[w + 1] : loaded.words[w];
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (elementBytes == 2) {
      const bool isOdd = loaded.shift & 2;
      const unsigned word = isOdd ? __funnelshift_r(loaded.words[w], loaded.words[w + 1], 16) : loaded.words[w];
      const int inBounds = loaded.count - 2 * w;
      elements.at[w] = inBounds >= 2 ? word : inBounds == 1 ? word & 0xFFFF : 0;
    } else {
      const unsigned word = __funnelshift_r(loaded.words[w], loaded.words[w + 1], loaded.shift % 4 * 8);
      const int inBounds = loaded.count - 4 * w;
      elements.at[w] = inBounds >= 4 ? word : inBounds > 0 ? word & ~(~0u << inBounds * 8) : 0;
    }
  }
  return elements;
}

/// The same slice by the threads of a warpgroup, from rows that start anywhere.
template <Operand operand, int rows, int outerExtent, int kExtent, typename T>
__device__ __forceinline__ void copySlice(unsigned char *to, const T *from, int outer0, int k0, int thread) {
  constexpr int passes = rows * 8 / warpgroup, unrolled = 4, extent = operand.isAlongK() ? kExtent : outerExtent;
  constexpr int bytes = sizeof(T), together = 16 / bytes;
#pragma unroll 1
  for (int first = 0; first < passes; first += unrolled) {
    Unaligned loaded[unrolled];
#pragma unroll
    for (int pass = 0; pass < unrolled; ++pass) {
      const int item = (first + pass) * warpgroup + thread, row = item / 8, column = item % 8 * together;
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
      *reinterpret_cast<Packed<unsigned, 4> *>(to + row * rowBytes + (item % 8 ^ row % 8) * 16) = aligned<bytes>(loaded[pass]);
    }
  }
}

/// Loads all slices of all tiles of this block. All threads of the warpgroup come here if any operand is copied by threads,
/// otherwise one.
template <Product product, Tile tile, typename A, typename B>
__device__ __forceinline__ void produce(Shared<product, tile> shared, Tensor<const A> a, Tensor<const B> b,
                                        unsigned char *memory) {
  using P = Plan<product, tile>;
  constexpr bool isBatched = product.batch > 1;
  constexpr int engineBytes = (product.a.isByEngine ? P::bytesA : 0) + (product.b.isByEngine ? P::bytesB : 0);
  const int thread = threadIdx.x % warpgroup;
  const SliceRange slices = slicesOfBlock<product, tile>();
  RingPlace<tile.stages> place{0, 1};
  for (int index = firstTile<tile>(); index < P::tiles; index += nextTile<tile>()) {
    const TileStart at = tileStart<product, tile>(index);
#pragma unroll 1
    for (int slice = slices.first; slice < slices.first + slices.count; ++slice) {
      const SharedAddress full = shared.full(place.stage);
      wait(shared.empty(place.stage), place.parity);
      if (engineBytes > 0 && thread == 0) {
        arriveExpecting(full, engineBytes);
        if constexpr (product.a.isByEngine)
          loadSlice<product.a, tile.m, isBatched>(shared.a(place.stage), a.map, full, at.m, slice * P::tileK, at.batch);
        if constexpr (tile.sharers > 1) loadShared<product, tile>(shared.b(place.stage), b.map, full, at.n, slice * P::tileK, at.batch);
        else if constexpr (product.b.isByEngine)
          loadSlice<product.b, tile.n, isBatched>(shared.b(place.stage), b.map, full, at.n, slice * P::tileK, at.batch);
      }
      if constexpr (!P::areAllByEngine) {
        unsigned char *stage = memory + place.stage * P::stageBytes;
        if constexpr (!product.a.isByEngine)
          copySlice<product.a, tile.m, product.m, product.k>(stage, a.elements + at.batch * product.a.batch, at.m,
                                                             slice * P::tileK, thread);
        if constexpr (!product.b.isByEngine)
          copySlice<product.b, tile.n, product.n, product.k>(stage + P::bytesA, b.elements + at.batch * product.b.batch,
                                                             at.n, slice * P::tileK, thread);
        fenceForAsync();
        arrive(full);
      }
      place.advance();
    }
  }
}

}  // namespace weft::hopper
