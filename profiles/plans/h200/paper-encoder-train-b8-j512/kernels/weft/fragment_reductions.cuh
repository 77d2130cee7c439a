// Accumulators of what the lanes of a warp hold of a tensor-core kernel's result (fragment.cuh),
// down to one element a column or one a row: over the fragments of a warp by shuffles, then over
// all warps of the grid that meet the same columns or rows, a strip.
//
// Every warp leaves its partial sums of a strip in device memory; the last one to arrive adds those
// of all, whichever it is, in an order that does not depend on it, so that results are reproducible
// bit by bit. Nothing orders a sum before its warp's arrival: a word of zero says that it is still
// in flight, and whoever has added a strip leaves zeros for the next launch.
#pragma once

#include "weft/fragment.cuh"
#include "weft/grid_memory.cuh"
#include "weft/warp.cuh"

namespace weft {

/// Of two sets of values, lanes without the bit keep the first, lanes with it the second, each with
/// those of the other lane added.
template <int count>
__device__ __forceinline__ void addAndHalve(float (&first)[count], const float (&second)[count],
                                            int bit) {
  const bool keepsSecond = threadIdx.x & bit;
#pragma unroll
  for (int e = 0; e < count; ++e) {
    const float received = ptx::shuffleXor(keepsSecond ? first[e] : second[e], bit);
    first[e] = (keepsSecond ? second[e] : first[e]) + received;
  }
}

/// Accumulators over the 16 rows of four fragments side by side: 64 columns, of which every lane is
/// left with two neighbours.
struct SubtileColumnReduction {
  float held[4][4];

  /// Fragment `step` of the four, in order. All lanes of the warp take part. isClipped: rows from
  /// `rows` on do not count.
  template <bool isClipped, typename Fragment>
  __device__ __forceinline__ void add(int step, const float (&values)[8], const Fragment &at,
                                      Offset rows) {
    const bool isUpper = !isClipped || at.row < rows, isLower = !isClipped || at.row + 8 < rows;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int upper = e / 2 * 4 + e % 2;
      held[step][e] = (isUpper ? values[upper] : 0.0f) + (isLower ? values[upper + 2] : 0.0f);
    }
    if (step % 2 == 1) addAndHalve(held[step - 1], held[step], 16);
    if (step == 3) addAndHalve(held[0], held[2], 8);
  }
  /// After the fourth: adds the sums of the lane's two columns.
  __device__ __forceinline__ void addTo(float (&total)[2]) const {
    float pair[2] = {held[0][0], held[0][1]};
    const float other[2] = {held[0][2], held[0][3]};
    addAndHalve(pair, other, 4);
    total[0] += pair[0], total[1] += pair[1];
  }
  /// The first of the lane's two columns, of 64.
  __device__ __forceinline__ static int columnOf(int lane) {
    return lane / 16 * 16 + lane / 8 % 2 * 32 + lane / 4 % 2 * 8 + lane % 4 * 2;
  }
};

/// Accumulators over the columns of any number of fragments one after another, of rows lane / 4 and
/// lane / 4 + 8.
struct FragmentRowReduction {
  float of[2] = {};

  /// isClipped: columns from `columns` on do not count.
  template <bool isClipped, typename Fragment>
  __device__ __forceinline__ void add(const float (&values)[8], const Fragment &at,
                                      Offset columns) {
#pragma unroll
    for (int e = 0; e < 8; ++e)
      of[rowInFragment(e) / 8] +=
          !isClipped || at.column + columnInFragment(e) < columns ? values[e] : 0.0f;
  }
  /// In the end: the four lanes of a row receive its sum. All lanes of the warp take part.
  __device__ __forceinline__ void join() {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int mask = 1; mask < 4; mask *= 2) of[half] += ptx::shuffleXor(of[half], mask);
  }
};

/// How a partial sum is left: never as zero, which would be a NaN that no addition makes.
__device__ __forceinline__ unsigned wordOf(float sum) {
  const unsigned word = ~bitsOf(sum);
  return word == 0 ? ~0x7fffffffu : word;
}
__device__ __forceinline__ float sumOf(unsigned word) { return ptx::floatFromBits(~word); }

/// Device memory of a kernel: `slots` partial sums of each of `strips` strips of `width` columns or
/// rows, and who has arrived. A module's own, so one launch of it at a time: two would take each
/// other's words, and wait for them without end. All zero at load and again after every launch.
template <int stripCount, int slotCount, int elements>
struct alignas(16) StripPartials {
  static constexpr int strips = stripCount, slots = slotCount, width = elements;
  unsigned of[strips][slots][width];
  unsigned arrived[strips];
};

/// Adds all partial sums of a strip, of `count` sums side by side, and hands each to `store(which,
/// place in the strip, sum)`. All lanes of the warp take part: a lane takes four neighbours of
/// every n-th slot, `most` words at once.
template <int most, int count, typename Partials, typename Store>
__device__ __forceinline__ void sumStrips(Partials *const (&partials)[count], int strip,
                                          const Store &store) {
  constexpr int quads = Partials::width / 4,
                stride = quads <= 4   ? 4
                         : quads <= 8 ? 8
                                      : 16,
                sharing = 32 / stride;
  constexpr int inFlight = most / 4 < count ? 1 : most / 4 / count > 8 ? 8 : most / 4 / count;
  static_assert(Partials::width % 4 == 0 && quads <= stride,
                "a strip is as wide as a warp reads at once");
  const int lane = threadIdx.x % 32, quad = lane % stride,
            first = quad < quads ? lane / stride : Partials::slots;
  float sum[count][4] = {};
#pragma unroll 1
  for (int from = first; from < Partials::slots; from += sharing * inFlight) {
    unsigned words[inFlight][count][4];
    const auto forEach = [&](const auto &visit) {
#pragma unroll
      for (int n = 0; n < inFlight; ++n)
#pragma unroll
        for (int which = 0; which < count; ++which)
          if (const int slot = from + n * sharing; slot < Partials::slots)
            visit(words[n][which], which, &partials[which]->of[strip][slot][quad * 4]);
    };
    bool isAnyPending;
    do {
      isAnyPending = false;
      forEach([](unsigned(&own)[4], int, const unsigned *at) { ptx::loadForGrid(own, at); });
      forEach([&](const unsigned(&own)[4], int, const unsigned *) {
#pragma unroll
        for (int e = 0; e < 4; ++e) isAnyPending |= own[e] == 0;
      });
    } while (isAnyPending);
    forEach([&](const unsigned(&own)[4], int which, unsigned *at) {
      const unsigned none[4] = {};
      ptx::storeForGrid(at, none);
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[which][e] += sumOf(own[e]);
    });
  }
#pragma unroll
  for (int mask = stride; mask < 32; mask *= 2)
#pragma unroll
    for (int which = 0; which < count; ++which)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[which][e] += ptx::shuffleXor(sum[which][e], mask);
  if (lane >= quads) return;
#pragma unroll
  for (int which = 0; which < count; ++which)
#pragma unroll
    for (int e = 0; e < 4; ++e) store(which, quad * 4 + e, sum[which][e]);
}
/// The same of one sum: store(place in the strip, sum).
template <typename Partials, typename Store>
__device__ __forceinline__ void sumStrip(Partials &partials, int strip, const Store &store) {
  Partials *const one[1] = {&partials};
  sumStrips<32>(one, strip, [&](int, int element, float sum) { store(element, sum); });
}

}  // namespace weft
