// Tiles that blocks share by their k-tiles (sm90_stream_k.cuh), on the emulator: accumulators of a
// run of k-tiles by plain loops, then what the device does with them. A block has its two consumers
// alone.
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/sm90_stream_k_entry.cuh"
#include "weft/sm90_stream_k_partials.cuh"

namespace weft::sm90 {

template <typename T, GemmProblem gemm, Tile tile, int blocks, typename Out, typename Tokens>
void streamKKernel(Tensor<const typename T::A> a, Tensor<const typename T::B> b,
                   Tensor<typename T::C> c, StreamKPartials<gemm, tile, blocks> &partials,
                   const Out &epilogueOp, const Tokens &tokens) {
  using P = TileConfig<gemm, tile>;
  const StreamKSchedule<gemm, tile, blocks> runs(tokens);
  const int consumer = threadIdx.x / warpgroup, lane = threadIdx.x % 32,
            warp = threadIdx.x % warpgroup / 32;
  if (gridDim.x != blocks) __builtin_trap();
  const Shared<gemm, tile> shared{0};
  EpilogueStages<gemm, tile, Out::tensors> epilogueStages{shared.epilogueStages(consumer),
                                                          shared.subtileFull(consumer), consumer};
  const int end = runs.first(blockIdx.x + 1);
  for (int from = runs.first(blockIdx.x); from < end;) {
    const int index = from / runs.kTiles, first = from % runs.kTiles,
              count = smaller(runs.kTiles - first, end - from);
    const Subtiles<gemm, tile> subtiles{tileStart<gemm, tile>(index), consumer * P::rowBlocks * 64};
    from += count;
    Accumulators<gemm, tile> own;
    for (int at = 0; at < P::rowBlocks * (tile.n / 2); ++at) {
      const int block = at / (tile.n / 2), place = at % (tile.n / 2), e = place % 8;
      const int row = subtiles.at.m + subtiles.firstRow + block * 64 + warp * 16 + lane / 4 +
                      rowInFragment(e),
                column = subtiles.at.n + place / 8 * 16 + lane % 4 * 2 + columnInFragment(e);
      float sum = 0;
      for (int k = first * P::tileK; k < smaller((first + count) * P::tileK, int(gemm.k)); ++k)
        if (row < gemm.m && column < gemm.n)
          sum += widen(startOf(
                     a)[subtiles.at.batch * gemm.a.batch + row * gemm.a.outer + k * gemm.a.k]) *
                 widen(startOf(
                     b)[subtiles.at.batch * gemm.b.batch + column * gemm.b.outer + k * gemm.b.k]);
      own[block][place] = sum;
    }
    if (count < runs.kTiles &&
        !reduceStreamKPartials(own, partials, runs, index, consumer, shared.partialsFull(0)))
      continue;
    VectorOfTile<gemm, tile, NoVectorOperand> vector;
    TileReductions<gemm, tile, NoEpilogueReductions> totals;
    storeEpilogue(own, c, subtiles, epilogueStages, vector, totals, epilogueOp);
  }
}

}  // namespace weft::sm90
