// Tiles that blocks share by their slices (hopper_streams.cuh), on the emulator: sums of a run of
// slices by plain loops, then what the device does with them. Included by that header when
// WEFT_EMULATE is defined. A block has its two consumers alone.
#pragma once

namespace weft::hopper {

template <typename T, Product product, Tile tile, int blocks, typename Epilogue>
void streamedContraction(Tensor<const typename ElementsOf<T>::A> a,
                         Tensor<const typename ElementsOf<T>::B> b,
                         Tensor<typename ElementsOf<T>::C> c,
                         StreamPartials<product, tile, blocks> &partials,
                         const Epilogue &epilogue) {
  using P = Plan<product, tile>;
  using S = Streams<product, tile, blocks>;
  using Out = Finish<NoPanelOperand, NoVectorOperand, NoPanelOutput, NoSums, Epilogue>;
  const Out finish{{}, {}, {}, {}, epilogue};
  const int consumer = threadIdx.x / warpgroup, lane = threadIdx.x % 32,
            warp = threadIdx.x % warpgroup / 32;
  if (gridDim.x != blocks) __builtin_trap();
  const Shared<product, tile> shared{0};
  Staging<product, tile, Out::tensors> staging{shared.staging(consumer),
                                               shared.panelLoaded(consumer), consumer};
  const int end = S::first(blockIdx.x + 1);
  for (int from = S::first(blockIdx.x); from < end;) {
    const int index = from / S::slices, first = from % S::slices,
              count = smaller(S::slices - first, end - from);
    const Panels<product, tile> panels{tileStart<product, tile>(index),
                                       consumer * P::rowBlocks * 64};
    from += count;
    Sums<product, tile> own;
    for (int at = 0; at < P::rowBlocks * (tile.n / 2); ++at) {
      const int block = at / (tile.n / 2), place = at % (tile.n / 2), e = place % 8;
      const int row = panels.at.m + panels.firstRow + block * 64 + warp * 16 + lane / 4 +
                      rowInFragment(e),
                column = panels.at.n + place / 8 * 16 + lane % 4 * 2 + columnInFragment(e);
      float sum = 0;
      for (int k = first * P::tileK; k < smaller((first + count) * P::tileK, int(product.k)); ++k)
        if (row < product.m && column < product.n)
          sum +=
              widen(startOf(
                  a)[panels.at.batch * product.a.batch + row * product.a.outer + k * product.a.k]) *
              widen(startOf(b)[panels.at.batch * product.b.batch + column * product.b.outer +
                               k * product.b.k]);
      own[block][place] = sum;
    }
    if (count < S::slices && !joinStreams(own, partials, index, consumer, shared.partsLanded(0)))
      continue;
    VectorOfTile<product, tile, NoVectorOperand> vector;
    TotalsOfTile<product, tile, NoSums> totals;
    storeSums(own, c, panels, staging, vector, totals, finish);
  }
}

}  // namespace weft::hopper
