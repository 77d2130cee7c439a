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
  using Partials = ColumnPartials<product, tile>;
  PanelColumnSums panel;
  float total[P::across][2] = {};
  float gathered[4];

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
  __device__ __forceinline__ static int strip(const P &panels, int warp) { return Shape::tileN(panels.at) * warpsOfConsumer + warp; }
  /// Adds those of all warps, in their order.
  __device__ __forceinline__ void gather(SharedAddress totals) {
    const int first = threadIdx.x % warpgroup / 32 * Shape::columns + threadIdx.x % 32 * 4;
    if (threadIdx.x % 32 >= Shape::columns / 4) return;
    loadSums(gathered, totals + first * 4);
#pragma unroll
    for (int warp = 1; warp < warpsOfConsumer; ++warp) {
      float others[4];
      loadSums(others, totals + (warp * tile.n + first) * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) gathered[e] += others[e];
    }
  }
  __device__ __forceinline__ void leave(Partials &partials, const P &panels) const {
    if (threadIdx.x % 32 >= Shape::columns / 4) return;
    unsigned words[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) words[e] = wordOf(gathered[e]);
    ptx::leaveForGrid(&partials.of[strip(panels, threadIdx.x % warpgroup / 32)][Shape::consumerM(panels)][threadIdx.x % 32 * 4], words);
  }
  /// Where an element of the strip lies in C, and how many there are.
  __device__ __forceinline__ static int place(const P &panels, int warp, int element) {
    return panels.at.n + warp * Shape::columns + element;
  }
  static constexpr Offset extent = product.n;
};

template <Product product, Tile tile> struct TotalOfTile<product, tile, true> {
  using P = Panels<product, tile>;
  using Shape = SumShape<product, tile>;
  using Partials = RowPartials<product, tile>;
  static constexpr int rowBlocks = Plan<product, tile>::rowBlocks;
  FragmentRowSums total[rowBlocks];

  __device__ __forceinline__ void add(int turn, int, const float (&values)[8], const Fragment &fragment) {
    total[turn / P::across].template add<product.n % tile.n != 0>(values, fragment, product.n);
  }
  __device__ __forceinline__ void share(SharedAddress) const {}
  __device__ __forceinline__ void gather(SharedAddress) const {}
  __device__ __forceinline__ static int strip(const P &panels, int warp) { return Shape::consumerM(panels) * warpsOfConsumer + warp; }
  /// Of the four lanes that know a row's sum, each leaves that of another block or half.
  __device__ __forceinline__ void leave(Partials &partials, const P &panels) {
    static_assert(rowBlocks <= 2, "a lane has one sum to leave");
    const int lane = threadIdx.x % 32;
    float own = 0;
#pragma unroll
    for (int block = 0; block < rowBlocks; ++block) {
      total[block].join();
#pragma unroll
      for (int half = 0; half < 2; ++half) own = lane % 4 == block * 2 + half ? total[block].of[half] : own;
    }
    if (lane % 4 < 2 * rowBlocks) ptx::leaveForGrid(&partials.of[strip(panels, threadIdx.x % warpgroup / 32)][Shape::tileN(panels.at)][lane % 4 * 8 + lane / 4], wordOf(own));
  }
  __device__ __forceinline__ static int place(const P &panels, int warp, int element) {
    return panels.at.m + panels.firstRow + element / 16 * 64 + warp * 16 + element % 16;
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
  /// Once a tile, behind its last panel: leaves the partial sums. isRequested: the copy engine will bring panels into the buffers. Totals
  /// pass through the buffer whose panel is the longest on its way: who waited for the last would wait for hundreds of cycles.
  template <bool isRequested, int tensors>
  __device__ __forceinline__ void leave(const Outputs &outputs, const Panels<product, tile> &panels, const Staging<product, tile, tensors> &staging) {
    static_assert(Outputs::columns * SumShape<product, tile>::totalBytes <= panelBytes, "the totals of all warps fit one panel");
    using Ring = Staging<product, tile, tensors>;
    const SharedAddress buffer = staging.buffer(0);
    if constexpr (Outputs::columns > 0) {
      constexpr bool isAnotherLeaving = product.isByEngine && Ring::turnsInFlight >= 2 * Ring::together;
      if (threadIdx.x % warpgroup == 0) waitForStoresToRead<isAnotherLeaving ? 1 : 0>();
      synchronize(ownThreads + staging.consumer, warpgroup);
      forEach(outputs, [&](auto &total, const auto &, int place) { total.share(buffer + place); });
      synchronize(ownThreads + staging.consumer, warpgroup);
      forEach(outputs, [&](auto &total, const auto &, int place) { total.gather(buffer + place); });
      if constexpr (isRequested) {
        fenceForAsync();  // ahead of the stores below, for which it would wait
        synchronize(ownThreads + staging.consumer, warpgroup);
      }
    }
    forEach(outputs, [&](auto &total, const auto &output, int) { total.leave(*output.partials, panels); });
  }
};

/// visit(output) of all that are of rows, or of columns, in their order.
template <bool isOfRows, typename Visit> __device__ __forceinline__ void forEachSum(const SumOutputs<> &, const Visit &) {}
template <bool isOfRows, typename First, typename... Rest, typename Visit>
__device__ __forceinline__ void forEachSum(const SumOutputs<First, Rest...> &outputs, const Visit &visit) {
  if constexpr (First::Partials::isOfRows == isOfRows) visit(outputs.first);
  forEachSum<isOfRows>(outputs.rest, visit);
}

constexpr int withServants = warpgroup + 64;  // threads of a consumer and of the producers that join its sums
/// Partial sums that a lane has on their way: as many as registers allow.
template <int sums> constexpr int wordsOfConsumer = sums == 1 ? 32 : 24;
constexpr int wordsOfProducer = 32;

/// The sums of rows, or of columns. One arrival serves all of them, at the counter of the first.
template <bool isOfRows, Product product, Tile tile, typename Outputs> struct StripsOf {
  using Total = TotalOfTile<product, tile, isOfRows>;
  using P = Panels<product, tile>;
  using Partials = typename Total::Partials;
  static constexpr int count = isOfRows ? Outputs::count - Outputs::columns : Outputs::columns;

  /// For a warp that has left its sums of a tile.
  __device__ __forceinline__ static unsigned arrive(const Outputs &outputs, const P &panels, int warp) {
    unsigned before = 0;
    bool hasArrived = false;
    forEachSum<isOfRows>(outputs, [&](const auto &output) {
      if (!hasArrived) before = ptx::count(&output.partials->arrived[Total::strip(panels, warp)], Partials::slots - 1);
      hasArrived = true;
    });
    return before;
  }
  /// Stores the sums of a warp's strip if its arrival was the last one.
  template <int words> __device__ __forceinline__ static void finish(const Outputs &outputs, const P &panels, int warp, unsigned before) {
    if constexpr (count > 0) {
      if (before != Partials::slots - 1) return;
      Partials *partials[count];
      int at = 0;
      forEachSum<isOfRows>(outputs, [&](const auto &output) { partials[at++] = output.partials; });
      addStrips<words, count>(partials, Total::strip(panels, warp), [&](int which, int element, float sum) {
        const int place = Total::place(panels, warp, element);
        int own = 0;
        forEachSum<isOfRows>(outputs, [&](const auto &output) {
          if (own++ == which && place < Total::extent) storeOne(output.elements + place, sum);
        });
      });
    }
  }
};

/// Brings the sums of `warps` warps of a consumer, from `first` on, together with those of other tiles, by one warp.
template <int words, Product product, Tile tile, typename Outputs>
__device__ __forceinline__ void joinSums(const Outputs &outputs, const Panels<product, tile> &panels, int first, int warps) {
  using Rows = StripsOf<true, product, tile, Outputs>;
  using Columns = StripsOf<false, product, tile, Outputs>;
  const int lane = threadIdx.x % 32;
  unsigned beforeRow = 0, beforeColumn = 0;
  ptx::warpBarrier();
  if (lane < warps) {
    beforeRow = Rows::arrive(outputs, panels, first + lane);
    beforeColumn = Columns::arrive(outputs, panels, first + lane);
  }
#pragma unroll 1
  for (int warp = 0; warp < warps; ++warp) {
    Rows::template finish<words>(outputs, panels, first + warp, ptx::fromLane(beforeRow, warp));
    Columns::template finish<words>(outputs, panels, first + warp, ptx::fromLane(beforeColumn, warp));
  }
}

/// Joins the sums of all tiles but a consumer's last one for the consumers: what it asks for waits behind the slices that are on their
/// way, thousands of cycles, and who adds strips late is late again at the next. Two warps of the producers, each for half of a
/// consumer's warps.
template <Product product, Tile tile, typename Outputs> __device__ __forceinline__ void serveSums(const Outputs &outputs, int half) {
  constexpr int consumersOfTile = tile.isPingPong ? 1 : Plan<product, tile>::consumers, warps = warpsOfConsumer / 2;
  int tiles = 0;  // of this block, before
#pragma unroll 1
  for (int index = firstTile<tile>(); index < Plan<product, tile>::tiles; index += nextTile<tile>(), ++tiles) {
#pragma unroll 1
    for (int of = 0; of < consumersOfTile; ++of) {
      const int consumer = tile.isPingPong ? tiles % 2 : of;
      const TilesOfConsumer<product, tile> own(consumer);
      if (own.isLast(index)) continue;
      synchronize(sumsLeft + consumer, withServants);
      arriveAt(sumsTaken + consumer, withServants);
      joinSums<wordsOfProducer, product, tile>(outputs, Panels<product, tile>{tileStart<product, tile>(index), own.firstRow}, half * warps, warps);
    }
  }
}

/// A consumer's part, once a tile behind its last panel: leaves the sums, and joins those that nobody joins for it.
template <bool isServed, bool isRequested, Product product, Tile tile, int tensors, typename Totals, typename... Sums>
__device__ __forceinline__ void leaveSums(Totals &totals, const SumOutputs<Sums...> &outputs, const Panels<product, tile> &panels,
                                          const Staging<product, tile, tensors> &staging, bool isFirst, bool isLast) {
  if (isServed && !isFirst) synchronize(sumsTaken + staging.consumer, withServants);
  totals.template leave<isRequested>(outputs, panels, staging);
  if (isServed && !isLast) arriveAt(sumsLeft + staging.consumer, withServants);
  else joinSums<wordsOfConsumer<sizeof...(Sums)>>(outputs, panels, threadIdx.x % warpgroup / 32, 1);
}

}  // namespace weft::hopper
