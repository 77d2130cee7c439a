// The GEMM template of sm_90a on the emulator: the epilogue store (sm90_epilogue.cuh,
// sm90_epilogue_reduction.cuh) of accumulators that plain loops compute. A block has consumers
// alone: two for a cooperative tile, one for a ping-pong tile, which takes all tiles of the block.
// Tiles of clusters are not emulated.
#pragma once

#include "weft/sm90_gemm_entry.cuh"

#include <limits>
#include <type_traits>

namespace weft::sm90 {

template <typename T>
requires std::is_same_v<decltype(Tensor<const T>::map), const TensorMap *>
const T *startOf(const Tensor<const T> &tensor) {
  return tensor.map ? reinterpret_cast<const T *>(emulatedMap(tensor.map).start) : tensor.elements;
}

/// One sum of products; zero out of bounds, as TMA brings zeros. Of elements of k from
/// `begin` to `end`.
template <GemmProblem gemm, typename A, typename B>
float sumAt(const A *a, const B *b, int batch, int row, int column, int begin = 0,
            int end = int(gemm.k)) {
  float sum = 0;
  if (row >= gemm.m || column >= gemm.n) return sum;
  for (int k = begin; k < end; ++k)
    sum += widen(a[batch * gemm.a.batch + row * gemm.a.outer + k * gemm.a.k]) *
           widen(b[batch * gemm.b.batch + column * gemm.b.outer + k * gemm.b.k]);
  return sum;
}

/// Whether TMA counts through several strides of a tensor: its elements are of type Strided
/// (sm90_strides.cuh).
template <typename T>
constexpr bool isStrided = requires {
  typename T::Stored;
};

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

template <typename T, GemmProblem gemm, Tile tile, typename Scaling, typename Out, typename Tokens>
void gemmKernel(Tensor<const typename T::A> a, Tensor<const typename T::B> b,
                Tensor<typename T::C> c, const Scaling &scaling, const Out &epilogueOp,
                const Tokens &tokens) {
  using P = TileConfig<gemm, tile>;
  using EpilogueReductions = typename Out::EpilogueReductions;
  static_assert(tile.splitK == 1, "clusters are not emulated");
  const int consumer = threadIdx.x / warpgroup, lane = threadIdx.x % 32,
            warp = threadIdx.x % warpgroup / 32;
  const Shared<gemm, tile> shared{0};
  EpilogueStages<gemm, tile, Out::tensors> epilogueStages{shared.epilogueStages(consumer),
                                                          shared.subtileFull(consumer), consumer};
  for (int index = blockIdx.x; index < P::tiles; index += gridDim.x) {
    const TileStart at = tileStart<gemm, tile>(index);
    const Subtiles<gemm, tile> subtiles{at, consumer * P::rowBlocks * 64,
                                        tokens.template isUnused<tile>(at)};
    if constexpr (Out::readsSubtile)
      if (threadIdx.x % warpgroup == 0)
        loadFirstSubtiles(epilogueStages, subtiles, epilogueOp.subtile.tensor.map);
    VectorOfTile<gemm, tile, typename Out::VectorInput> vectorOfTile;
    vectorOfTile.load(epilogueOp.vector, subtiles);
    Accumulators<gemm, tile> own;
    [[maybe_unused]] float factors[Scaling::isScaled ? P::kTiles : 1][P::rowBlocks][2];
    if constexpr (Scaling::isScaled) {
      typename Scaling::template OfRows<gemm, tile> ofRows(scaling, subtiles);
      for (int kTile = 0; kTile < P::kTiles; ++kTile) ofRows.take(factors[kTile], kTile);
    }
    constexpr bool areRows = requires {
      startOf(a);
      startOf(b);
    };
    if constexpr (!areRows) accumulatorsOfKTiles<gemm, tile>(own, shared, a, b, subtiles);
    else
      for (int at = 0; at < P::rowBlocks * (tile.n / 2); ++at) {
        const int block = at / (tile.n / 2), place = at % (tile.n / 2), e = place % 8;
        const int row = subtiles.at.m + subtiles.firstRow + block * 64 + warp * 16 + lane / 4 +
                        rowInFragment(e),
                  column = subtiles.at.n + place / 8 * 16 + lane % 4 * 2 + columnInFragment(e);
        if constexpr (!Scaling::isScaled)
          own[block][place] = sumAt<gemm>(startOf(a), startOf(b), subtiles.at.batch, row, column);
        else {
          own[block][place] = 0;
          for (int kTile = 0; kTile < P::kTiles; ++kTile)
            own[block][place] +=
                factors[kTile][block][rowInFragment(e) / 8] *
                sumAt<gemm>(startOf(a), startOf(b), subtiles.at.batch, row, column,
                            kTile * P::tileK, smaller((kTile + 1) * P::tileK, int(gemm.k)));
        }
      }
    if (subtiles.isUnused)  // whatever they are, nothing of them is to reach a result
      for (auto &block : own)
        for (float &accumulator : block) accumulator = std::numeric_limits<float>::quiet_NaN();
    TileReductions<gemm, tile, EpilogueReductions> totals;
    storeEpilogue(own, c, subtiles, epilogueStages, vectorOfTile, totals, epilogueOp);
    // Every tile as if it were the consumer's last one: nobody else joins its accumulators here.
    if constexpr (EpilogueReductions::count > 0)
      storeTileReductions<false, Out::readsSubtile>(totals, epilogueOp.reductions, subtiles,
                                                    epilogueStages, true, true);
  }
}

}  // namespace weft::sm90
