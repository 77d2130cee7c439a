// The GEMM skeleton of sm_90a on the emulator: the epilogue store (sm90_epilogue.cuh,
// sm90_epilogue_reduction.cuh) of accumulators that plain loops compute. Included by sm90_gemm.cuh
// when WEFT_EMULATE is defined. A block has consumers alone: two for a cooperative tile, one for a
// ping-pong tile, which takes all tiles of the block. Tiles of clusters are not emulated.
#pragma once

#include "weft/sm90_args.cuh"

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

template <typename T, GemmProblem gemm, Tile tile, typename Scaling, typename Out>
void gemmKernel(Tensor<const typename T::A> a, Tensor<const typename T::B> b,
                Tensor<typename T::C> c, const Scaling &scaling, const Out &epilogueOp) {
  using P = TileConfig<gemm, tile>;
  using EpilogueReductions = typename Out::EpilogueReductions;
  static_assert(tile.splitK == 1, "clusters are not emulated");
  const int consumer = threadIdx.x / warpgroup, lane = threadIdx.x % 32,
            warp = threadIdx.x % warpgroup / 32;
  const Shared<gemm, tile> shared{0};
  EpilogueStages<gemm, tile, Out::tensors> epilogueStages{shared.epilogueStages(consumer),
                                                          shared.subtileFull(consumer), consumer};
  for (int index = blockIdx.x; index < P::tiles; index += gridDim.x) {
    const Subtiles<gemm, tile> subtiles{tileStart<gemm, tile>(index), consumer * P::rowBlocks * 64};
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
    if constexpr (!areRows)
      accumulatorsOfKTiles<gemm, tile>(own, shared, a, b, subtiles);  // emulate_sm90_strides.h
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
    TileReductions<gemm, tile, EpilogueReductions> totals;
    storeEpilogue(own, c, subtiles, epilogueStages, vectorOfTile, totals, epilogueOp);
    // Every tile as if it were the consumer's last one: nobody else joins its accumulators here.
    if constexpr (EpilogueReductions::count > 0)
      storeTileReductions<false, Out::readsSubtile>(totals, epilogueOp.reductions, subtiles,
                                                    epilogueStages, true, true);
  }
}

}  // namespace weft::sm90
