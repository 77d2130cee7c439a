// The operand of C's shape that an epilogue of the GEMM kernel template reads (sm90_epilogue.cuh),
// brought by a thread that does nothing else, in small pieces over the first half of a tile's
// products.
//
// Whoever asks for bytes from DRAM is held up, and so are the k-tiles that wait behind them in L2,
// whose copies take all that a multiprocessor can take in. A tile's subtiles at once cost its
// products 1700 of 8300 cycles where their bytes are worth 512; in pieces with pauses between them
// 400 (bench/RESULTS.md, "operands of epilogues").
#pragma once

#include "weft/sm90_epilogue.cuh"

namespace weft::sm90 {

/// Tells produceSubtiles that the buffers of a consumer's subtiles have been left; one thread of
/// it, once a tile.
__device__ __forceinline__ void releaseSubtiles(SharedAddress barrier) {
  waitForStoresToRead<0>();
  arrive(barrier);
}

/// About so many nanoseconds, up to twice as many; 10^6 at most.
__device__ __forceinline__ void pauseFor(unsigned nanoseconds) { __nanosleep(nanoseconds); }

/// Nanoseconds between two pieces: half of what the products of a tile take, which are 32 of a
/// tile's m x n and k-tile in a cycle.
template <GemmProblem gemm, Tile tile, int pieces>
__host__ __device__ constexpr int pauseBetweenPieces(int kTiles) {
  constexpr int perMicrosecond = 1700, most = 100000;
  const Offset cycles = Offset(kTiles) * tile.m * tile.n / 32 / 2 / pieces;
  return cycles * 1000 / perMicrosecond < most ? int(cycles * 1000 / perMicrosecond) : most;
}

/// Asks for the first subtiles of every tile, once its consumer has freed their buffers;
/// storeEpilogue asks for later ones.
template <int tensors, GemmProblem gemm, Tile tile, typename Tokens = AllTokens>
__device__ __forceinline__ void produceSubtiles(Shared<gemm, tile> shared, const TensorMap *map,
                                                const Tokens &tokens = {}) {
  static_assert(tile.splitK == 1, "blocks that share a tile have no barrier left for this");
  using P = Subtiles<gemm, tile>;
  constexpr int ofConsumer = firstSubtiles<gemm, tile, tensors>,
                consumersOfTile = tile.isPingPong ? 1 : 2;
  constexpr int pieces = ofConsumer * consumersOfTile * 64 / boxRowsPerLoad;
  const int kTiles = kTilesOfBlock<gemm, tile>(tokens).count;
  const auto loadTileSubtiles = [&](int index, int consumer, int before, int firstRow) {
    wait(shared.subtilesEmpty(consumer), before % 2);
    const EpilogueStages<gemm, tile, tensors> epilogueStages{shared.epilogueStages(consumer),
                                                             shared.subtileFull(consumer), consumer,
                                                             before * P::storeSteps};
    const TileStart at = tileStart<gemm, tile>(tokens, index);
    const P subtiles{at, firstRow, tokens.template isUnused<tile>(at)};
#pragma unroll 1
    for (int subtile = 0; subtile < ofConsumer; ++subtile)
      loadSubtile(epilogueStages, subtiles, map, subtile,
                  [&] { pauseFor(pauseBetweenPieces<gemm, tile, pieces>(kTiles)); });
  };
  int tiles = 0;  // of this block, before
#pragma unroll 1
  for (int index = firstTile<tile>(); index < countTiles<gemm, tile>(tokens);
       index += nextTile<tile>(), ++tiles) {
    loadTileSubtiles(index, tile.isPingPong ? tiles % 2 : 0, tile.isPingPong ? tiles / 2 : tiles,
                     0);
    if constexpr (!tile.isPingPong)
      loadTileSubtiles(index, 1, tiles, TileConfig<gemm, tile>::rowBlocks * 64);
  }
}

}  // namespace weft::sm90
