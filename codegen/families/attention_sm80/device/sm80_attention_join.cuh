// How rows of attention come together (sm80_attention.cuh): several warps of a block have folded
// (maximum, sum, output) over different keys of the same rows, and so have several blocks, the
// splits of a tile of rows.
//
//    warps    registers ──> shared memory ──────> rows of the block
//    splits   rows of the block ──> device memory; the last block to arrive reads those of all ──>
//             rows of the tile ──> output
//
// Partial results are added in the order of warps, then of splits, whichever block comes last: no
// block waits for another one, and results have the same bits in every launch.
#pragma once

#include "weft/fragment.cuh"
#include "weft/grid_memory.cuh"
#include "weft/online_softmax.cuh"
#include "weft/sm80_attention_tiles.cuh"

namespace weft::sm80 {

/// In the place of AttentionPartials where a tile of rows has one block.
struct NoPartials {};

/// Device memory of a kernel: the rows of every block, each with its maximum and sum before its
/// output, and how many blocks have arrived. A module's own, so one launch of it at a time;
/// counters are zero at load and again after every launch.
template <AttentionShape shape, AttentionTile tile>
struct alignas(16) AttentionPartials {
  using P = AttentionConfig<shape, tile>;
  static constexpr int rows = smaller(tile.queries, P::rows), floats = 4 + shape.valueDim;
  float of[P::rowTiles][tile.splits][rows][floats];
  unsigned arrived[P::rowTiles];
};

/// Four neighbouring elements of an output row, before its division, with the maximum and the sum
/// of the keys that it has seen.
struct PartOfRow {
  float maximum = negativeInfinity, sum = 0, at[4] = {};

  /// `stats`: maximum and sum of other keys. factor is positive.
  __device__ __forceinline__ void add(const float (&stats)[4], const float (&values)[4],
                                      float factor) {
    const float largest = ptx::maximum(maximum, stats[0]);
    const float finite = finiteMaximum(largest);
    const float older = rescaling(maximum, finite, factor),
                newer = rescaling(stats[0], finite, factor);
    maximum = largest;
    sum = sum * older + stats[1] * newer;
#pragma unroll
    for (int e = 0; e < 4; ++e) at[e] = at[e] * older + values[e] * newer;
  }
};

/// Parts 0, 1, ... in this order. load(stats, values, part) reads one; many are in flight at once.
template <int parts, typename Load>
__device__ __forceinline__ PartOfRow reducePartials(float factor, const Load &load) {
  constexpr int inFlight = smaller(parts, 16);
  PartOfRow row;
#pragma unroll 1
  for (int first = 0; first < parts; first += inFlight) {
    float stats[inFlight][4], values[inFlight][4];
#pragma unroll
    for (int n = 0; n < inFlight; ++n)
      if (parts % inFlight == 0 || first + n < parts) load(stats[n], values[n], first + n);
#pragma unroll
    for (int n = 0; n < inFlight; ++n)
      if (parts % inFlight == 0 || first + n < parts) row.add(stats[n], values[n], factor);
  }
  return row;
}

__device__ __forceinline__ void loadSharedFloats(float (&values)[4], SharedAddress from) {
  unsigned words[4];
  loadShared(words, from);
#pragma unroll
  for (int e = 0; e < 4; ++e) values[e] = ptx::floatFromBits(words[e]);
}

/// A warp's rows into shared memory.
template <AttentionShape shape, AttentionTile tile, int count>
__device__ __forceinline__ void leaveRows(const float (&accumulators)[count],
                                          const OnlineSoftmax &softmax) {
  using P = AttentionConfig<shape, tile>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int ownRow = warp / P::rowWarps * tile.queries + warp % P::rowWarps * 16 + lane / 4;
  const auto placeOf = [&](int row, int column) {
    return dynamicShared() + ((ownRow + row) * P::joinPitch + column) * 4;
  };
#pragma unroll
  for (int o = 0; o < count; ++o)
    storeShared(placeOf(rowInFragment(o % 8), o / 8 * 16 + lane % 4 * 2 + columnInFragment(o % 8)),
                bitsOf(accumulators[o]));
  if (lane % 4 == 0) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      storeShared(placeOf(half * 8, P::statsColumn), bitsOf(softmax.maximum[half]));
      storeShared(placeOf(half * 8, P::statsColumn + 1), bitsOf(softmax.sum[half]));
    }
  }
}

/// Calls visit(row, column) for four columns of every row of the block, all threads together.
template <AttentionShape shape, AttentionTile tile, typename Visit>
__device__ __forceinline__ void forEachQuad(const AttentionPlace &at, const Visit &visit) {
  constexpr int quads = shape.valueDim / 4;
  const int count = (at.lastRow - at.firstRow + 1) * quads;
#pragma unroll 1
  for (int quad = threadIdx.x; quad < count; quad += AttentionConfig<shape, tile>::threads)
    visit(quad / quads, quad % quads * 4);
}

/// Divides by the sum and stores four elements of an output row, and with the first ones the
/// logarithm of the sum.
template <AttentionShape shape, AttentionTile tile, typename Args>
__device__ __forceinline__ void storeRow(const PartOfRow &part, float factor, const Args &args,
                                         const AttentionPlace &at, int row, int column) {
  const RowPlace place = placeOfRow<tile>(at, at.firstRow + row);
  const HeadPlaces places = args.placesOfHead(place.head);
  constexpr float ln2 = 0.693147180559945f;
  if (args.logSums != nullptr && column == 0)
    args.logSums[places.logSums + place.query * shape.rowLogSums] =
        part.sum == 0 ? negativeInfinity : (part.maximum * factor + log2f(part.sum)) * ln2;
  const float scaling = part.sum == 0 ? 0.0f : args.keepScale / part.sum;
  auto *to = args.output + places.output + place.query * shape.rowOutput + column;
  if constexpr (shape.isOutputAligned) {
    Vec<float, 4> four;
#pragma unroll
    for (int e = 0; e < 4; ++e) four.at[e] = part.at[e] * scaling;
    storeVector<4>(to, four);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) storeOne(to + e, part.at[e] * scaling);
  }
}

/// Brings the rows of all warps and splits together and stores them. All threads have read what
/// was in shared memory.
template <AttentionShape shape, AttentionTile tile, int count, typename Args>
__device__ __forceinline__ void joinRows(const float (&accumulators)[count], OnlineSoftmax &softmax,
                                         float factor, const Args &args, const AttentionPlace &at,
                                         int split) {
  using P = AttentionConfig<shape, tile>;
  softmax.joinSums();
  leaveRows<shape, tile>(accumulators, softmax);
  ptx::barrier();
  const auto rowOfBlock = [&](int row, int column) {
    return reducePartials<P::keyWarps>(factor, [&](float(&stats)[4], float(&values)[4], int part) {
      const SharedAddress from = dynamicShared() + (part * tile.queries + row) * P::joinPitch * 4;
      loadSharedFloats(stats, from + P::statsColumn * 4);
      loadSharedFloats(values, from + column * 4);
    });
  };
  if constexpr (tile.splits == 1) {
    forEachQuad<shape, tile>(at, [&](int row, int column) {
      storeRow<shape, tile>(rowOfBlock(row, column), factor, args, at, row, column);
    });
  } else {
    const int rowTile =
        at.firstHead / tile.packedHeads * P::queryTiles + at.firstRow / tile.queries;
    auto &ofTile = args.partials->of[rowTile];
    forEachQuad<shape, tile>(at, [&](int row, int column) {
      const PartOfRow part = rowOfBlock(row, column);
      float *to = ofTile[split][row];
      if (column == 0) storeVector<4>(to, Vec<float, 4>{{part.maximum, part.sum, 0.0f, 0.0f}});
      storeVector<4>(to + 4 + column,
                     Vec<float, 4>{{part.at[0], part.at[1], part.at[2], part.at[3]}});
    });
    ptx::barrier();
    constexpr unsigned last = tile.splits - 1;
    if (threadIdx.x == 0)
      storeShared(dynamicShared(), ptx::arrive(&args.partials->arrived[rowTile], last));
    ptx::barrier();
    unsigned before[4];
    loadShared(before, dynamicShared());
    if (before[0] != last) return;
    forEachQuad<shape, tile>(at, [&](int row, int column) {
      const PartOfRow part =
          reducePartials<tile.splits>(factor, [&](float(&stats)[4], float(&values)[4], int which) {
            const float *from = ofTile[which][row];
            ptx::loadFromGrid(stats, from);
            ptx::loadFromGrid(values, from + 4 + column);
          });
      storeRow<shape, tile>(part, factor, args, at, row, column);
    });
  }
}

}  // namespace weft::sm80
