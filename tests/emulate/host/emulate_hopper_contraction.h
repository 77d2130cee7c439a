// The contraction skeleton of sm_90a on the emulator: the way out (hopper_store.cuh,
// hopper_sums.cuh) of sums that plain loops compute. Included by hopper_contraction.cuh when
// WEFT_EMULATE is defined. A block has consumers alone: two for a cooperative tile, one for a
// ping-pong tile, which takes all tiles of the block. Tiles of clusters are not emulated.
#pragma once

#include "weft/hopper_store.cuh"

#include <type_traits>

namespace weft::hopper {

template <typename T>
requires std::is_same_v<decltype(Tensor<const T>::map), const TensorMap *>
const T *startOf(const Tensor<const T> &tensor) {
  return tensor.map ? reinterpret_cast<const T *>(emulatedMap(tensor.map).start) : tensor.elements;
}

struct NoScaling {
  static constexpr bool isScaled = false;
};

/// One sum of products; zero out of bounds, as the copy engine brings zeros. Of elements of k from
/// `begin` to `end`.
template <Product product, typename A, typename B>
float sumAt(const A *a, const B *b, int batch, int row, int column, int begin = 0,
            int end = int(product.k)) {
  float sum = 0;
  if (row >= product.m || column >= product.n) return sum;
  for (int k = begin; k < end; ++k)
    sum += widen(a[batch * product.a.batch + row * product.a.outer + k * product.a.k]) *
           widen(b[batch * product.b.batch + column * product.b.outer + k * product.b.k]);
  return sum;
}

template <typename T, Product product, Tile tile, typename Scaling, typename PanelInput,
          typename VectorInput, typename PanelOutput, typename SumOutputs, typename Epilogue>
void scaledContraction(Tensor<const typename ElementsOf<T>::A> a,
                       Tensor<const typename ElementsOf<T>::B> b,
                       Tensor<typename ElementsOf<T>::C> c, const Scaling &scaling,
                       const PanelInput &panel, const VectorInput &vector,
                       const PanelOutput &output, const SumOutputs &sums,
                       const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  using Out = Finish<PanelInput, VectorInput, PanelOutput, SumOutputs, Epilogue>;
  static_assert(tile.splits == 1, "clusters are not emulated");
  const Out finish{panel, vector, output, sums, epilogue};
  const int consumer = threadIdx.x / warpgroup, lane = threadIdx.x % 32,
            warp = threadIdx.x % warpgroup / 32;
  const Shared<product, tile> shared{0};
  Staging<product, tile, Out::tensors> staging{shared.staging(consumer),
                                               shared.panelLoaded(consumer), consumer};
  for (int index = blockIdx.x; index < P::tiles; index += gridDim.x) {
    const Panels<product, tile> panels{tileStart<product, tile>(index),
                                       consumer * P::rowBlocks * 64};
    if constexpr (Out::readsPanel)
      if (threadIdx.x % warpgroup == 0) requestPanels(staging, panels, finish.panel.tensor.map);
    VectorOfTile<product, tile, VectorInput> vectorOfTile;
    vectorOfTile.load(vector, panels);
    Sums<product, tile> own;
    [[maybe_unused]] float factors[Scaling::isScaled ? P::slices : 1][P::rowBlocks][2];
    if constexpr (Scaling::isScaled) {
      typename Scaling::template OfRows<product, tile> ofRows(scaling, panels);
      for (int slice = 0; slice < P::slices; ++slice) ofRows.take(factors[slice], slice);
    }
    constexpr bool areRows = requires {
      startOf(a);
      startOf(b);
    };
    if constexpr (!areRows)
      sumsOfSlices<product, tile>(own, shared, a, b, panels);  // emulate_hopper_strides.h
    else
      for (int at = 0; at < P::rowBlocks * (tile.n / 2); ++at) {
        const int block = at / (tile.n / 2), place = at % (tile.n / 2), e = place % 8;
        const int row = panels.at.m + panels.firstRow + block * 64 + warp * 16 + lane / 4 +
                        rowInFragment(e),
                  column = panels.at.n + place / 8 * 16 + lane % 4 * 2 + columnInFragment(e);
        if constexpr (!Scaling::isScaled)
          own[block][place] = sumAt<product>(startOf(a), startOf(b), panels.at.batch, row, column);
        else {
          own[block][place] = 0;
          for (int slice = 0; slice < P::slices; ++slice)
            own[block][place] +=
                factors[slice][block][rowInFragment(e) / 8] *
                sumAt<product>(startOf(a), startOf(b), panels.at.batch, row, column,
                               slice * P::tileK, smaller((slice + 1) * P::tileK, int(product.k)));
        }
      }
    TotalsOfTile<product, tile, SumOutputs> totals;
    storeSums(own, c, panels, staging, vectorOfTile, totals, finish);
    // Every tile as if it were the consumer's last one: nobody else joins its sums here.
    if constexpr (SumOutputs::count > 0)
      leaveSums<false, Out::readsPanel>(totals, finish.sums, panels, staging, true, true);
  }
}

}  // namespace weft::hopper
