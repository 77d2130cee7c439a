// Copies of operands and results with several strides along a group of axes, on the emulator: boxes
// of any dimensions between memory and shared memory as TMA moves them, 128 bytes of an
// element of the contiguous group after the other, swizzled. Included by sm90_strides.cuh when
// WEFT_EMULATE is defined.
#pragma once

#include "weft/sm90_gemm.cuh"

namespace weft::sm90 {

/// What a test puts into a TensorMap of such a tensor, behind what it puts into any
/// (emulate_sm90.h).
struct EmulatedBoxes : EmulatedMap {
  long long strides[4];
};
static_assert(sizeof(EmulatedBoxes) <= sizeof(TensorMap));

/// Visits the elements of a box: where they lie in shared memory, and in memory, nullptr where they
/// are out of bounds.
template <int dimensions, typename Visit>
void forEachOfBoxes(const TensorMap *map, SharedAddress box, const int (&at)[5], Visit visit) {
  EmulatedBoxes of;
  std::memcpy(&of, map->bytes, sizeof of);
  if (of.dimensions != dimensions || of.box[0] * 2 != rowBytes || box % 1024 != 0) __builtin_trap();
  int elements = 1;
  for (int d = 0; d < dimensions; ++d) elements *= of.box[d];
  for (int element = 0; element < elements; ++element) {
    long long offset = 0;
    bool isInside = true;
    for (int d = 0, rest = element; d < dimensions; rest /= of.box[d++]) {
      const int index = at[d] + rest % of.box[d];
      isInside = isInside && index >= 0 && index < of.extents[d];
      offset += index * (d == 0 ? 1 : of.strides[d - 1]);
    }
    const int row = element / 64, column = element % 64;
    visit(sharedBytes(box + row * rowBytes + (column / 8 ^ row % 8) * 16 + column % 8 * 2),
          isInside ? of.start + 2 * offset : nullptr);
  }
}
template <int dimensions>
void loadBox(SharedAddress to, const TensorMap *map, SharedAddress, const int (&at)[5]) {
  forEachOfBoxes<dimensions>(map, to, at, [](unsigned char *shared, const unsigned char *global) {
    if (global) std::memcpy(shared, global, 2);
    else std::memset(shared, 0, 2);
  });
}
template <int dimensions>
void storeBox(const TensorMap *map, SharedAddress from, const int (&at)[5]) {
  forEachOfBoxes<dimensions>(map, from, at, [](const unsigned char *shared, unsigned char *global) {
    if (global) std::memcpy(global, shared, 2);
  });
}

template <typename T>
constexpr bool isStrided = false;
template <typename T, MapDimensions dimensions>
constexpr bool isStrided<Strided<T, dimensions>> = true;

/// An element of a k-tile as the products read it: from shared memory where the operand has several
/// strides, else from memory.
template <Operand operand, int extent, int extentOfK, typename T>
float kTileElement(const Tensor<const T> &tensor, SharedAddress kTile, int batch, int outer0,
                   int k0, int outer, int k) {
  if constexpr (isStrided<T>) {
    const int row = operand.isAlongK() ? outer : k, column = operand.isAlongK() ? k : outer % 64;
    const SharedAddress subtile = kTile + (operand.isAlongK() ? 0 : outer / 64 * subtileBytes);
    typename T::Stored element;
    std::memcpy(
        &element,
        sharedBytes(subtile + row * rowBytes + (column / 8 ^ row % 8) * 16 + column % 8 * 2), 2);
    return widen(element);
  } else {
    if (outer0 + outer >= extent || k0 + k >= extentOfK) return 0;
    return widen(startOf(
        tensor)[batch * operand.batch + (outer0 + outer) * operand.outer + (k0 + k) * operand.k]);
  }
}

/// The accumulators of a tile k-tile by k-tile, each through shared memory.
template <GemmProblem gemm, Tile tile, typename A, typename B>
void accumulatorsOfKTiles(Accumulators<gemm, tile> &own, const Shared<gemm, tile> &shared,
                          const Tensor<const A> &a, const Tensor<const B> &b,
                          const Subtiles<gemm, tile> &subtiles) {
  using P = TileConfig<gemm, tile>;
  constexpr bool isBatched = gemm.batch > 1;
  const int lane = threadIdx.x % 32, warp = threadIdx.x % warpgroup / 32;
  const TileStart &at = subtiles.at;
  for (int place = 0; place < P::rowBlocks * (tile.n / 2); ++place)
    own[place / (tile.n / 2)][place % (tile.n / 2)] = 0;
  for (int k0 = 0; k0 < gemm.k; k0 += P::tileK) {
    weft::emulate::barrier(__FILE__, __LINE__);
    if (threadIdx.x == 0) {
      if constexpr (isStrided<A>)
        loadKTile<gemm.a, tile.m, isBatched>(shared.a(0), a.map, 0u, at.m, k0, at.batch);
      if constexpr (isStrided<B>)
        loadKTile<gemm.b, tile.n, isBatched>(shared.b(0), b.map, 0u, at.n, k0, at.batch);
    }
    weft::emulate::barrier(__FILE__, __LINE__);
    for (int place = 0; place < P::rowBlocks * (tile.n / 2); ++place) {
      const int block = place / (tile.n / 2), inBlock = place % (tile.n / 2), e = inBlock % 8;
      const int row = subtiles.firstRow + block * 64 + warp * 16 + lane / 4 + rowInFragment(e),
                column = inBlock / 8 * 16 + lane % 4 * 2 + columnInFragment(e);
      for (int k = 0; k < P::tileK; ++k)
        own[block][inBlock] += kTileElement<gemm.a, int(gemm.m), int(gemm.k)>(
                                   a, shared.a(0), at.batch, at.m, k0, row, k) *
                               kTileElement<gemm.b, int(gemm.n), int(gemm.k)>(
                                   b, shared.b(0), at.batch, at.n, k0, column, k);
    }
  }
  weft::emulate::barrier(__FILE__, __LINE__);
}

}  // namespace weft::sm90
