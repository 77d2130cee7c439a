// The last tile of a block of ping-pong consumers. With nothing left to multiply, its owner hands the lower half of its sums over to the
// other consumer, and both finish 64 rows each: an epilogue with nothing to hide behind takes half the time.
#pragma once

#include "weft/hopper_panels.cuh"

namespace weft::hopper {

/// Whether both consumers finish it: two halves of 64 rows of an epilogue that takes longer than to hand sums over. Where sums are more
/// what this keeps beside them would not fit.
template <Product product, Tile tile, bool isServed, typename Finish>
constexpr bool isLastShared = tile.isPingPong && tile.splits == 1 && Plan<product, tile>::rowBlocks == 2 && Plan<product, tile>::sums <= 128 &&
                              !Finish::isUnchanged && (isServed || !Finish::readsPanel);

/// Leaves the partial sums of a tile that both consumers have finished: of rows each its own, of columns the owner those of both, which
/// meet in `buffer`. `name`: of a barrier.
template <typename Totals, typename Outputs, Product product, Tile tile>
__device__ __forceinline__ void leaveHalf(Totals &totals, const Outputs &outputs, const Panels<product, tile> &panels, SharedAddress buffer,
                                          bool isOwner, int name) {
  totals.forEach(outputs, [&]<typename Total>(Total &total, const auto &output, int place) {
    if constexpr (Total::isOfRows) total.template leave<1>(*output.partials, panels, buffer);
    else total.share(buffer + 2 * place, isOwner ? 0 : warpgroup / 32);
  });
  if (!isOwner) return arriveAt(name, 2 * warpgroup);
  synchronize(name, 2 * warpgroup);
  totals.forEach(outputs, [&]<typename Total>(Total &total, const auto &output, int place) {
    if constexpr (!Total::isOfRows) total.template leave<2 * warpgroup / 32>(*output.partials, panels, buffer + 2 * place);
  });
}

/// Both consumers come here, behind the products of all tiles of the block; of the last one its owner has the sums and the vector.
/// `finishOwn`: what is left to do for the sums of a consumer's own tiles.
template <typename Types, bool isServed, Product product, Tile tile, typename Finish, typename FinishOwn>
__device__ __forceinline__ void finishLastTile(Sums<product, tile> &sums, Shared<product, tile> shared, Tensor<typename Types::C> c,
                                               Staging<product, tile, Finish::tensors> &staging,
                                               VectorOfTile<product, tile, typename Finish::VectorInput> &vector, const Finish &finish,
                                               const FinishOwn &finishOwn) {
  constexpr int handedOver = 6, halvesSummed = 7, groups = tile.n / 8, groupBytes = warpgroup * 16;  // of four sums of every thread
  static_assert(groups * groupBytes + 8 * tile.n * 4 * Finish::SumOutputs::count <= tile.stages * Plan<product, tile>::stageBytes, "all slices have been read");
  const int before = (Plan<product, tile>::tiles - 1 - firstTile<tile>()) / nextTile<tile>(), index = firstTile<tile>() + before * nextTile<tile>();
  const bool isOwner = before % 2 == staging.consumer;
  const Panels<product, tile> panels{tileStart<product, tile>(index), isOwner ? 0 : 64};
  const SharedAddress place = shared.start + threadIdx.x % warpgroup * 16;
  if (isOwner) {
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      const float *of = sums[1] + 4 * group;
      storeFour(place + group * groupBytes, of[0], of[1], of[2], of[3]);
    }
    arriveAt(handedOver, 2 * warpgroup);
  } else {
    if constexpr (isServed)
      if (threadIdx.x % warpgroup == 0) freePanels(shared.panelsFree(staging.consumer));
    vector.load(finish.vector, panels);
    finishOwn();
    synchronize(handedOver, 2 * warpgroup);
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      float of[4];
      loadSums(of, place + group * groupBytes);
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[0][4 * group + e] = of[e];
    }
  }
  TotalsOfTile<product, tile, typename Finish::SumOutputs> totals;
  storePanels<Panels<product, tile>::across>(sums, c, panels, staging, vector, totals, finish);
  if constexpr (Finish::SumOutputs::count > 0) leaveHalf(totals, finish.sums, panels, shared.start + groups * groupBytes, isOwner, halvesSummed);
  if (isOwner) finishOwn();
}

}  // namespace weft::hopper
