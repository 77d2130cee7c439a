// Products of an operand that is scaled by one factor for each of its rows and run of whole slices of k, as the last step of a decomposed softmax
// does ("Recomposing Softmax Layers", section 3.2): the sums of a slice's products are scaled in its place, and nothing is rewritten in shared
// memory. So the copy engine brings both operands as they are, and a row of the result costs one more product in fp32 for each slice.
#pragma once

#include "weft/hopper_contraction.cuh"

namespace weft::hopper {

/// Where factors lie: element strides of members of the batch, of rows of A, and from a run of k to the next; slices of a run.
struct FactorPlaces {
  Offset batch, row, run;
  int slices;
};

template <FactorPlaces places> struct SliceFactors {
  static constexpr bool isScaled = true;
  const float *elements;

  /// Of a lane's rows of every block of 64, for slices ahead: what a thread asks for comes behind all slices that are on their way, so for
  /// more of them than the ring has, where registers allow.
  template <Product product, Tile tile> struct OfRows {
    using P = Plan<product, tile>;
    static constexpr int rowBlocks = P::rowBlocks, ahead = P::sums <= 64 ? tile.stages + 2 : 4;
    const float *from[rowBlocks][2];
    float of[ahead][rowBlocks][2];  // of the next slices, in their order
    __device__ __forceinline__ OfRows(const SliceFactors &factors, const Panels<product, tile> &panels) {
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = panels.at.m + panels.firstRow + block * 64 + threadIdx.x % warpgroup / 32 * 16 + threadIdx.x % 32 / 4 + half * 8;
          from[block][half] = factors.elements + panels.at.batch * places.batch + atMost(row, product.m - 1) * places.row;
        }
#pragma unroll
      for (int slice = 0; slice < ahead; ++slice) load(slice, slice);
    }
    __device__ __forceinline__ void load(int place, int slice) {
      const Offset run = smaller(slice, P::slices - 1) / places.slices;
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) of[place][block][half] = loadOne(from[block][half] + run * places.run);
    }
    /// Makes place for the factors behind the last that it has, and asks for them. `slice`: whose were the first.
    __device__ __forceinline__ void advance(int slice) {
#pragma unroll
      for (int place = 1; place < ahead; ++place)
#pragma unroll
        for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
          for (int half = 0; half < 2; ++half) of[place - 1][block][half] = of[place][block][half];
      load(ahead - 1, slice + ahead);
    }
  };

#if !defined(WEFT_EMULATE)
  /// As multiplyTile of the plain skeleton; all stages have been handed back when it returns.
  template <typename A, typename B, Product product, Tile tile>
  __device__ __forceinline__ static void multiplyTile(Sums<product, tile> &sums, Shared<product, tile> shared, RingPlace<tile.stages> &place,
                                                      OfRows<product, tile> &factors, int firstRow, bool isSpeaker) {
    using P = Plan<product, tile>;
    static_assert(tile.splits == 1, "slices of a whole tile");
    constexpr int stepA = product.a.isAlongK() ? 32 : 16 * rowBytes, stepB = product.b.isAlongK() ? 32 : 16 * rowBytes;
#pragma unroll
    for (int block = 0; block < P::rowBlocks; ++block)
#pragma unroll
      for (int at = 0; at < tile.n / 2; ++at) sums[block][at] = 0.0f;
#pragma unroll 1
    for (int slice = 0; slice < P::slices; ++slice) {
      wait(shared.full(place.stage), place.parity);
      const unsigned long long a = describeOperand(shared.a(place.stage) + firstRow * rowBytes, panelBytes);
      const unsigned long long b = describeOperand(shared.b(place.stage), panelBytes);
      Sums<product, tile> part;
      fenceProducts();
#pragma unroll
      for (int step = 0; step < rowBytes / 32; ++step)
#pragma unroll
        for (int block = 0; block < P::rowBlocks; ++block)
          multiplyElements<A, B, !product.a.isAlongK(), !product.b.isAlongK()>(part[block], a + (block * panelBytes + step * stepA >> 4), b + (step * stepB >> 4), step > 0);
      commitProducts();
      float factor[P::rowBlocks][2];
#pragma unroll
      for (int block = 0; block < P::rowBlocks; ++block) factor[block][0] = factors.of[0][block][0], factor[block][1] = factors.of[0][block][1];
      factors.advance(slice);
      waitForProducts<0>();
      if (isSpeaker) leaveStage(shared, place.stage);
      place.advance();
#pragma unroll
      for (int block = 0; block < P::rowBlocks; ++block)
#pragma unroll
        for (int at = 0; at < tile.n / 2; ++at)
          sums[block][at] = fmaf(factor[block][rowInFragment(at % 8) / 8], part[block][at], sums[block][at]);
    }
  }
#endif
};

}  // namespace weft::hopper
