// Products of an operand that is scaled by one factor for each of its rows and run of whole slices of k, as the last step of a decomposed softmax
// does ("Recomposing Softmax Layers", section 3.2): the sums of a slice's products are scaled in its place, and nothing is rewritten in shared
// memory. So the copy engine brings both operands as they are, and an element of the result costs one more product in fp32 for each slice.
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

  /// Of a lane's rows of every block of 64. The four lanes that have the same rows ask for four slices at once, and hand them to each other,
  /// four slices ahead: what a thread asks for waits behind all slices that are on their way.
  template <Product product, Tile tile> struct OfRows {
    using P = Plan<product, tile>;
    static constexpr int rowBlocks = P::rowBlocks, together = 4, groups = smaller(2, (P::slices + together - 1) / together);
    const float *from[rowBlocks][2];
    float of[groups][rowBlocks][2];  // of this group of slices and the next
    __device__ __forceinline__ OfRows(const SliceFactors &factors, const Panels<product, tile> &panels) {
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = panels.at.m + panels.firstRow + block * 64 + threadIdx.x % warpgroup / 32 * 16 + threadIdx.x % 32 / 4 + half * 8;
          from[block][half] = factors.elements + panels.at.batch * places.batch + atMost(row, product.m - 1) * places.row;
        }
#pragma unroll
      for (int group = 0; group < groups; ++group) load(group, group);
    }
    __device__ __forceinline__ void load(int place, int group) {
      const Offset run = smaller(group * together + int(threadIdx.x % together), P::slices - 1) / places.slices;
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) of[place][block][half] = loadOne(from[block][half] + run * places.run);
    }
    /// Those of one slice, the first and one after the other. All lanes of the warp take part.
    __device__ __forceinline__ void take(float (&factor)[rowBlocks][2], int slice) {
      const int lane = threadIdx.x % 32 / together * together + slice % together;
#pragma unroll
      for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
        for (int half = 0; half < 2; ++half) factor[block][half] = ptx::floatFromBits(__shfl_sync(~0u, bitsOf(of[0][block][half]), lane));
      if (slice % together < together - 1) return;
#pragma unroll
      for (int group = 1; group < groups; ++group)
#pragma unroll
        for (int block = 0; block < rowBlocks; ++block)
#pragma unroll
          for (int half = 0; half < 2; ++half) of[group - 1][block][half] = of[group][block][half];
      const int next = slice / together + groups;
      if (next * together < P::slices) load(groups - 1, next);
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
      factors.take(factor, slice);
      waitForProducts<0>();
      if (isSpeaker) leaveStage(shared, place.stage);
      place.advance();
#pragma unroll
      for (int block = 0; block < P::rowBlocks; ++block)
#pragma unroll
        for (int at = 0; at < tile.n / 2; ++at) {
          asm volatile("" : "+f"(part[block][at]));  // behind the wait
          sums[block][at] = fmaf(factor[block][rowInFragment(at % 8) / 8], part[block][at], sums[block][at]);
        }
    }
  }
#endif
};

}  // namespace weft::hopper
