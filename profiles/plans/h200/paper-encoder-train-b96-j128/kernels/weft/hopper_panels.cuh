// The operand of C's shape that an epilogue of the contraction skeleton reads (hopper_store.cuh), brought by a thread that does
// nothing else, in small pieces over the first half of a tile's products.
//
// Whoever asks for bytes from DRAM is held up, and so are the slices that wait behind them in L2, whose copies take all that a
// multiprocessor can take in. A tile's panels at once cost its products 1700 of 8300 cycles where their bytes are worth 512; in pieces
// with pauses between them 400 (bench/RESULTS.md, "operands of epilogues").
#pragma once

#include "weft/hopper_store.cuh"

namespace weft::hopper {

/// Tells servePanels that the buffers of a consumer's panels have been left; one thread of it, once a tile.
__device__ __forceinline__ void freePanels(SharedAddress barrier) {
  waitForStoresToRead<0>();
  arrive(barrier);
}

/// Nanoseconds between two pieces: half of what the products of a tile take, which are 32 of a tile's m x n and slice in a cycle.
template <Product product, Tile tile, int pieces> __host__ __device__ constexpr int pauseOfPiece() {
  constexpr Offset cycles = Offset(Plan<product, tile>::slices) * tile.m * tile.n / 32 / 2 / pieces, perMicrosecond = 1700;
  constexpr int most = 100000;
  return cycles * 1000 / perMicrosecond < most ? int(cycles * 1000 / perMicrosecond) : most;
}

/// Asks for the first panels of every tile, once its consumer has freed their buffers; storeSums asks for later ones.
template <int tensors, Product product, Tile tile> __device__ __forceinline__ void servePanels(Shared<product, tile> shared, const TensorMap *map) {
  static_assert(tile.splits == 1, "blocks that share a tile have no barrier left for this");
  using P = Panels<product, tile>;
  constexpr int ofConsumer = firstPanels<product, tile, tensors>, consumersOfTile = tile.isPingPong ? 1 : 2;
  constexpr int pieces = ofConsumer * consumersOfTile * 64 / pieceRows;
  const auto serve = [&](int index, int consumer, int before, int firstRow) {
    wait(shared.panelsFree(consumer), before % 2);
    const Staging<product, tile, tensors> staging{shared.staging(consumer), shared.panelLoaded(consumer), consumer, before * P::turns};
#pragma unroll 1
    for (int panel = 0; panel < ofConsumer; ++panel)
      requestPanel(staging, P{tileStart<product, tile>(index), firstRow}, map, panel, [] { pauseFor(pauseOfPiece<product, tile, pieces>()); });
  };
  int tiles = 0;  // of this block, before
#pragma unroll 1
  for (int index = firstTile<tile>(); index < Plan<product, tile>::tiles; index += nextTile<tile>(), ++tiles) {
    serve(index, tile.isPingPong ? tiles % 2 : 0, tile.isPingPong ? tiles / 2 : tiles, 0);
    if constexpr (!tile.isPingPong) serve(index, 1, tiles, Plan<product, tile>::rowBlocks * 64);
  }
}

}  // namespace weft::hopper
