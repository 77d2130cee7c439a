// Sums of what the epilogue of a contraction makes, down to one element a column or one a row of C (hopper_store.cuh).
//
// A warp has 16 rows of every 64 of its consumer. Of columns the four warps of a consumer add theirs in shared memory, in the buffer
// that its panels left from, and each takes a quarter of the tile's columns on; rows are a warp's own. So a strip, what one warp takes
// on, is a quarter of a tile's columns, or the rows of a warp in a tile; it meets as many others as there are consumers along m, or
// tiles along n (fragment_sums.cuh).
#pragma once

#include "weft/fragment_sums.cuh"
#include "weft/hopper_store.cuh"

namespace weft::hopper {

constexpr int warpsOfConsumer = warpgroup / 32;

template <Product product, Tile tile> struct SumShape {
  using P = Plan<product, tile>;
  static_assert(tile.splits == 1, "sums are of whole tiles");
  static constexpr int consumersOfTile = tile.isPingPong ? 1 : P::consumers, consumersAlongM = P::tilesM * consumersOfTile;
  static constexpr int rows = P::rowBlocks * 16, columns = tile.n / warpsOfConsumer;  // of a strip
  static constexpr int totalBytes = warpsOfConsumer * tile.n * 4;                     // of a consumer's warps, before they are added
  __device__ __forceinline__ static int tileN(const TileStart &at) { return at.n / tile.n; }
  /// Of the consumer that has these panels, among all along m.
  __device__ __forceinline__ static int consumerM(const Panels<product, tile> &panels) {
    return panels.at.m / tile.m * consumersOfTile + panels.firstRow / (P::rowBlocks * 64);
  }
};

/// What all tiles leave of one sum: of every column of C, or of every row.
template <Product product, Tile tile>
struct ColumnPartials : StripPartials<Plan<product, tile>::tilesN * warpsOfConsumer, SumShape<product, tile>::consumersAlongM, SumShape<product, tile>::columns> {
  static constexpr bool isOfRows = false;
};
template <Product product, Tile tile>
struct RowPartials : StripPartials<SumShape<product, tile>::consumersAlongM * warpsOfConsumer, Plan<product, tile>::tilesN, SumShape<product, tile>::rows> {
  static constexpr bool isOfRows = true;
};

/// A sum that an epilogue asks for: where its elements go, and where its partial sums are kept.
template <typename T, typename PartialSums> struct SumOutput {
  using Partials = PartialSums;
  T *elements;
  Partials *partials;
};
template <typename T, typename Partials> SumOutput(T *, Partials *) -> SumOutput<T, Partials>;

/// All of them, in the order in which the epilogue hands over what is summed.
template <typename... Outputs> struct SumOutputs;
template <> struct SumOutputs<> {
  static constexpr int count = 0, columns = 0;
};
template <typename First, typename... Rest> struct SumOutputs<First, Rest...> {
  static constexpr int count = 1 + sizeof...(Rest), columns = SumOutputs<Rest...>::columns + (First::Partials::isOfRows ? 0 : 1);
  First first;
  SumOutputs<Rest...> rest;
};
__device__ __forceinline__ SumOutputs<> sumOutputs() { return {}; }
template <typename First, typename... Rest> __device__ __forceinline__ SumOutputs<First, Rest...> sumOutputs(const First &first, const Rest &...rest) {
  return {first, sumOutputs(rest...)};
}

/// One sum over what a consumer has of a tile.
template <Product product, Tile tile, bool isOfRows> struct TotalOfTile;

template <Product product, Tile tile> struct TotalOfTile<product, tile, false> {
  using P = Panels<product, tile>;
  using Shape = SumShape<product, tile>;
  PanelColumnSums panel;
  float total[P::across][2] = {};

  __device__ __forceinline__ void add(int turn, int step, const float (&values)[8], const Fragment &fragment) {
    panel.add<product.m % tile.m != 0>(step, values, fragment, product.m);
    if (step == 3) panel.addTo(total[turn % P::across]);
  }
  /// A warp's totals, one behind the other, for the consumer's other warps.
  __device__ __forceinline__ void share(SharedAddress totals) const {
    const int warp = threadIdx.x % warpgroup / 32;
#pragma unroll
    for (int across = 0; across < P::across; ++across)
      storePair(totals + (warp * tile.n + across * 64 + PanelColumnSums::columnOf(threadIdx.x % 32)) * 4, total[across][0], total[across][1]);
  }
  __device__ __forceinline__ static int strip(const P &panels) { return Shape::tileN(panels.at) * warpsOfConsumer + threadIdx.x % warpgroup / 32; }
  /// Those of all warps, in their order.
  template <typename Partials> __device__ __forceinline__ void leave(Partials &partials, const P &panels, SharedAddress totals) {
    const int first = threadIdx.x % warpgroup / 32 * Shape::columns + threadIdx.x % 32 * 4;
    if (threadIdx.x % 32 >= Shape::columns / 4) return;
    Vec<float, 4> sum;
    loadSums(sum.at, totals + first * 4);
#pragma unroll
    for (int warp = 1; warp < warpsOfConsumer; ++warp) {
      float others[4];
      loadSums(others, totals + (warp * tile.n + first) * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) sum.at[e] += others[e];
    }
    storeVector<4>(&partials.of[strip(panels)][Shape::consumerM(panels)][threadIdx.x % 32 * 4], sum);
  }
  /// Where an element of the strip lies in C, and how many there are.
  __device__ __forceinline__ static int place(const P &panels, int element) {
    return panels.at.n + threadIdx.x % warpgroup / 32 * Shape::columns + element;
  }
  static constexpr Offset extent = product.n;
};

template <Product product, Tile tile> struct TotalOfTile<product, tile, true> {
  using P = Panels<product, tile>;
  using Shape = SumShape<product, tile>;
  static constexpr int rowBlocks = Plan<product, tile>::rowBlocks;
  FragmentRowSums total[rowBlocks];

  __device__ __forceinline__ void add(int turn, int, const float (&values)[8], const Fragment &fragment) {
    total[turn / P::across].template add<product.n % tile.n != 0>(values, fragment, product.n);
  }
  __device__ __forceinline__ void share(SharedAddress) const {}
  __device__ __forceinline__ static int strip(const P &panels) { return Shape::consumerM(panels) * warpsOfConsumer + threadIdx.x % warpgroup / 32; }
  /// Of the four lanes that know a row's sum, each leaves that of another block or half.
  template <typename Partials> __device__ __forceinline__ void leave(Partials &partials, const P &panels, SharedAddress) {
    const int lane = threadIdx.x % 32;
    float *to = partials.of[strip(panels)][Shape::tileN(panels.at)];
#pragma unroll
    for (int block = 0; block < rowBlocks; ++block) {
      total[block].join();
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (lane % 4 == block * 2 + half) to[block * 16 + half * 8 + lane / 4] = total[block].of[half];
    }
  }
  __device__ __forceinline__ static int place(const P &panels, int element) {
    return panels.at.m + panels.firstRow + element / 16 * 64 + threadIdx.x % warpgroup / 32 * 16 + element % 16;
  }
  static constexpr Offset extent = product.m;
};

/// All sums over what a consumer has of a tile. Values: what the epilogue hands over of a fragment.
template <Product product, Tile tile> struct TotalsOfTile<product, tile, SumOutputs<>> {
  template <typename Visit> __device__ __forceinline__ void forEach(const SumOutputs<> &, const Visit &, int) {}
  __device__ __forceinline__ void add(int, int, const float (*)[8], const Fragment &) {}
};
template <Product product, Tile tile, typename First, typename... Rest> struct TotalsOfTile<product, tile, SumOutputs<First, Rest...>> {
  using Outputs = SumOutputs<First, Rest...>;
  struct Values {
    float of[Outputs::count][8];
  };
  TotalOfTile<product, tile, First::Partials::isOfRows> first;
  TotalsOfTile<product, tile, SumOutputs<Rest...>> rest;

  __device__ __forceinline__ void add(int turn, int step, const float (*values)[8], const Fragment &fragment) {
    first.add(turn, step, values[0], fragment);
    rest.add(turn, step, values + 1, fragment);
  }
  /// visit(total, output, place of the sum's totals in shared memory)
  template <typename Visit> __device__ __forceinline__ void forEach(const Outputs &outputs, const Visit &visit, int place = 0) {
    visit(first, outputs.first, place);
    rest.forEach(outputs.rest, visit, place + (First::Partials::isOfRows ? 0 : SumShape<product, tile>::totalBytes));
  }
  /// Once a tile, behind its last panel: leaves the partial sums. isRequested: the copy engine will bring panels into the buffer.
  template <bool isRequested>
  __device__ __forceinline__ void leave(const Outputs &outputs, const Panels<product, tile> &panels, SharedAddress buffer, int consumer) {
    static_assert(Outputs::columns * SumShape<product, tile>::totalBytes <= panelBytes, "the totals of all warps fit one panel");
    if constexpr (Outputs::columns > 0) {
      if (threadIdx.x % warpgroup == 0) waitForStoresToRead<0>();
      synchronize(1 + consumer, warpgroup);
      forEach(outputs, [&](auto &total, const auto &, int place) { total.share(buffer + place); });
      synchronize(1 + consumer, warpgroup);
    }
    forEach(outputs, [&](auto &total, const auto &output, int place) { total.leave(*output.partials, panels, buffer + place); });
    if constexpr (Outputs::columns > 0 && isRequested) {
      fenceForAsync();
      synchronize(1 + consumer, warpgroup);
    }
  }
};

/// visit(output) of all that are of rows, or of columns.
template <bool isOfRows, typename Visit> __device__ __forceinline__ void forEachSum(const SumOutputs<> &, const Visit &) {}
template <bool isOfRows, typename First, typename... Rest, typename Visit>
__device__ __forceinline__ void forEachSum(const SumOutputs<First, Rest...> &outputs, const Visit &visit) {
  if constexpr (First::Partials::isOfRows == isOfRows) visit(outputs.first);
  forEachSum<isOfRows>(outputs.rest, visit);
}

/// Stores the sums of rows, or of columns, of the strips that are whole once this warp has arrived for its tiles: `first` and every
/// `stride`-th behind it, which lanes arrive for side by side. One arrival serves all sums, at the counter of the first.
template <bool isOfRows, Product product, Tile tile, typename Outputs>
__device__ __forceinline__ void finishStrips(const Outputs &outputs, int first, int stride, int firstRow) {
  using P = Plan<product, tile>;
  using Total = TotalOfTile<product, tile, isOfRows>;
  const auto panelsOf = [&](int index) { return Panels<product, tile>{tileStart<product, tile>(index), firstRow}; };
#pragma unroll 1
  for (int from = first; from < P::tiles; from += 32 * stride) {
    const int own = from + threadIdx.x % 32 * stride;
    unsigned before = 0, last = 0;
    bool hasArrived = false;
    ptx::warpBarrier();
    forEachSum<isOfRows>(outputs, [&](const auto &output) {
      if (hasArrived) return;
      hasArrived = true;
      last = output.partials->slots - 1;
      if (own < P::tiles) before = ptx::arrive(&output.partials->arrived[Total::strip(panelsOf(own))], last);
    });
    ptx::warpBarrier();
#pragma unroll 1
    for (int lane = 0, index = from; lane < 32 && index < P::tiles; ++lane, index += stride) {
      if (ptx::fromLane(before, lane) != last) continue;
      const Panels<product, tile> panels = panelsOf(index);
      forEachSum<isOfRows>(outputs, [&](const auto &output) {
        addStrip(*output.partials, Total::strip(panels), [&](int element, float sum) {
          if (const int place = Total::place(panels, element); place < Total::extent) storeOne(output.elements + place, sum);
        });
      });
    }
  }
}

/// Once a consumer, behind its last tile: every arrival waits until what the warp wrote has reached L2, microseconds at every tile.
template <Product product, Tile tile, typename... Sums>
__device__ __forceinline__ void finishSums(const SumOutputs<Sums...> &outputs, int first, int stride, int firstRow) {
  if constexpr (SumOutputs<Sums...>::columns > 0) finishStrips<false, product, tile>(outputs, first, stride, firstRow);
  if constexpr (SumOutputs<Sums...>::columns < SumOutputs<Sums...>::count) finishStrips<true, product, tile>(outputs, first, stride, firstRow);
}

}  // namespace weft::hopper
