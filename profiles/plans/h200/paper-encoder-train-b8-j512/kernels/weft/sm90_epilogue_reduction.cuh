// Accumulators of what the epilogue of a GEMM makes, down to one element a column or one a row of C
// (sm90_epilogue.cuh).
//
// A warp has 16 rows of every 64 of its consumer. Of columns the four warps of a consumer add
// theirs in shared memory, in the buffer that its subtiles left from, and each takes a quarter of
// the tile's columns on; rows are a warp's own. So a strip, what one warp takes on, is a quarter of
// a tile's columns, or the rows of a warp in a tile; it meets as many others as there are consumers
// along m, or tiles along n (fragment_reductions.cuh).
#pragma once

#include "weft/fragment_reductions.cuh"
#include "weft/sm90_epilogue.cuh"

namespace weft::sm90 {

constexpr int warpsOfConsumer = warpgroup / 32;

template <GemmProblem gemm, Tile tile>
struct ReductionShape {
  using P = TileConfig<gemm, tile>;
  static_assert(tile.splitK == 1, "sums are of whole tiles");
  static constexpr int consumersOfTile = tile.isPingPong ? 1 : P::consumers,
                       consumersAlongM = P::tilesM * consumersOfTile;
  static constexpr int rows = P::rowBlocks * 16, columns = tile.n / warpsOfConsumer;  // of a strip
  static constexpr int totalBytes =
      warpsOfConsumer * tile.n * 4;  // of a consumer's warps, before they are added
  __device__ __forceinline__ static int tileN(const TileStart &at) { return at.n / tile.n; }
  /// Of the consumer that has these subtiles, among all along m.
  __device__ __forceinline__ static int consumerM(const Subtiles<gemm, tile> &subtiles) {
    return subtiles.at.m / tile.m * consumersOfTile + subtiles.firstRow / (P::rowBlocks * 64);
  }
};

/// What all tiles storePartials of one sum: of every column of C, or of every row.
template <GemmProblem gemm, Tile tile>
struct ColumnPartials : StripPartials<TileConfig<gemm, tile>::tilesN * warpsOfConsumer,
                                      ReductionShape<gemm, tile>::consumersAlongM,
                                      ReductionShape<gemm, tile>::columns> {
  static constexpr bool isOfRows = false;
};
template <GemmProblem gemm, Tile tile>
struct RowPartials
    : StripPartials<ReductionShape<gemm, tile>::consumersAlongM * warpsOfConsumer,
                    TileConfig<gemm, tile>::tilesN, ReductionShape<gemm, tile>::rows> {
  static constexpr bool isOfRows = true;
};

/// A sum that an epilogue asks for: where its elements go, and where its partial sums are kept.
template <typename T, typename PartialsType>
struct EpilogueReductionOutput {
  using Partials = PartialsType;
  T *elements;
  Partials *partials;
};
template <typename T, typename Partials>
EpilogueReductionOutput(T *, Partials *) -> EpilogueReductionOutput<T, Partials>;

/// All of them, in the order in which the epilogue hands over what is summed.
template <typename... Outputs>
struct EpilogueReductions;
template <>
struct EpilogueReductions<> {
  static constexpr int count = 0, columns = 0;
};
template <typename First, typename... Rest>
struct EpilogueReductions<First, Rest...> {
  static constexpr int count = 1 + sizeof...(Rest), columns = EpilogueReductions<Rest...>::columns +
                                                              (First::Partials::isOfRows ? 0 : 1);
  First first;
  EpilogueReductions<Rest...> rest;
};
__device__ __forceinline__ EpilogueReductions<> epilogueReductions() { return {}; }
template <typename First, typename... Rest>
__device__ __forceinline__ EpilogueReductions<First, Rest...> epilogueReductions(
    const First &first, const Rest &...rest) {
  return {first, epilogueReductions(rest...)};
}

/// One sum over what a consumer has of a tile.
template <GemmProblem gemm, Tile tile, bool isOfRows>
struct TileReduction;

template <GemmProblem gemm, Tile tile>
struct TileReduction<gemm, tile, false> {
  using P = Subtiles<gemm, tile>;
  using Shape = ReductionShape<gemm, tile>;
  using Partials = ColumnPartials<gemm, tile>;
  SubtileColumnReduction subtile;
  float total[P::across][2] = {};
  float gathered[4];

  __device__ __forceinline__ void add(int storeStep, int step, const float (&values)[8],
                                      const Fragment &fragment) {
    subtile.add<gemm.m % tile.m != 0>(step, values, fragment, gemm.m);
    if (step == 3) subtile.addTo(total[storeStep % P::across]);
  }
  /// A warp's totals, one after another, for the consumer's other warps.
  __device__ __forceinline__ void share(SharedAddress totals) const {
    const int warp = threadIdx.x % warpgroup / 32;
#pragma unroll
    for (int across = 0; across < P::across; ++across)
      storePair(totals + (warp * tile.n + across * 64 +
                          SubtileColumnReduction::columnOf(threadIdx.x % 32)) *
                             4,
                total[across][0], total[across][1]);
  }
  __device__ __forceinline__ static int strip(const P &subtiles, int warp) {
    return Shape::tileN(subtiles.at) * warpsOfConsumer + warp;
  }
  /// Adds those of all warps, in their order.
  __device__ __forceinline__ void gather(SharedAddress totals) {
    const int first = threadIdx.x % warpgroup / 32 * Shape::columns + threadIdx.x % 32 * 4;
    if (threadIdx.x % 32 >= Shape::columns / 4) return;
    loadAccumulators(gathered, totals + first * 4);
#pragma unroll
    for (int warp = 1; warp < warpsOfConsumer; ++warp) {
      float others[4];
      loadAccumulators(others, totals + (warp * tile.n + first) * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) gathered[e] += others[e];
    }
  }
  __device__ __forceinline__ void storePartials(Partials &partials, const P &subtiles) const {
    if (threadIdx.x % 32 >= Shape::columns / 4) return;
    unsigned words[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) words[e] = wordOf(gathered[e]);
    ptx::storeForGrid(&partials.of[strip(subtiles, threadIdx.x % warpgroup / 32)]
                                  [Shape::consumerM(subtiles)][threadIdx.x % 32 * 4],
                      words);
  }
  /// Where an element of the strip lies in C, and how many there are.
  __device__ __forceinline__ static int place(const P &subtiles, int warp, int element) {
    return subtiles.at.n + warp * Shape::columns + element;
  }
  static constexpr Offset extent = gemm.n;
};

template <GemmProblem gemm, Tile tile>
struct TileReduction<gemm, tile, true> {
  using P = Subtiles<gemm, tile>;
  using Shape = ReductionShape<gemm, tile>;
  using Partials = RowPartials<gemm, tile>;
  static constexpr int rowBlocks = TileConfig<gemm, tile>::rowBlocks;
  FragmentRowReduction total[rowBlocks];

  __device__ __forceinline__ void add(int storeStep, int, const float (&values)[8],
                                      const Fragment &fragment) {
    total[storeStep / P::across].template add<gemm.n % tile.n != 0>(values, fragment, gemm.n);
  }
  __device__ __forceinline__ void share(SharedAddress) const {}
  __device__ __forceinline__ void gather(SharedAddress) const {}
  __device__ __forceinline__ static int strip(const P &subtiles, int warp) {
    return Shape::consumerM(subtiles) * warpsOfConsumer + warp;
  }
  /// Of the four lanes that know a row's sum, each leaves that of another block or half.
  __device__ __forceinline__ void storePartials(Partials &partials, const P &subtiles) {
    static_assert(rowBlocks <= 2, "a lane has one sum to storePartials");
    const int lane = threadIdx.x % 32;
    float own = 0;
#pragma unroll
    for (int block = 0; block < rowBlocks; ++block) {
      total[block].join();
#pragma unroll
      for (int half = 0; half < 2; ++half)
        own = lane % 4 == block * 2 + half ? total[block].of[half] : own;
    }
    if (lane % 4 < 2 * rowBlocks)
      ptx::storeForGrid(&partials.of[strip(subtiles, threadIdx.x % warpgroup / 32)]
                                    [Shape::tileN(subtiles.at)][lane % 4 * 8 + lane / 4],
                        wordOf(own));
  }
  __device__ __forceinline__ static int place(const P &subtiles, int warp, int element) {
    return subtiles.at.m + subtiles.firstRow + element / 16 * 64 + warp * 16 + element % 16;
  }
  static constexpr Offset extent = gemm.m;
};

/// All sums over what a consumer has of a tile. Values: what the epilogue hands over of a fragment.
template <GemmProblem gemm, Tile tile>
struct TileReductions<gemm, tile, EpilogueReductions<>> {
  template <typename Visit>
  __device__ __forceinline__ void forEach(const EpilogueReductions<> &, const Visit &, int) {}
  __device__ __forceinline__ void add(int, int, const float (*)[8], const Fragment &) {}
};
template <GemmProblem gemm, Tile tile, typename First, typename... Rest>
struct TileReductions<gemm, tile, EpilogueReductions<First, Rest...>> {
  using Outputs = EpilogueReductions<First, Rest...>;
  struct Values {
    float of[Outputs::count][8];
  };
  TileReduction<gemm, tile, First::Partials::isOfRows> first;
  TileReductions<gemm, tile, EpilogueReductions<Rest...>> rest;

  __device__ __forceinline__ void add(int storeStep, int step, const float (*values)[8],
                                      const Fragment &fragment) {
    first.add(storeStep, step, values[0], fragment);
    rest.add(storeStep, step, values + 1, fragment);
  }
  /// visit(total, output, place of the sum's totals in shared memory)
  template <typename Visit>
  __device__ __forceinline__ void forEach(const Outputs &outputs, const Visit &visit,
                                          int place = 0) {
    visit(first, outputs.first, place);
    rest.forEach(outputs.rest, visit,
                 place + (First::Partials::isOfRows ? 0 : ReductionShape<gemm, tile>::totalBytes));
  }
  /// Once a tile, behind its last subtile: leaves the partial sums. isRequested: TMA will bring
  /// subtiles into the buffers. Totals pass through the buffer whose subtile is the longest in
  /// flight: who waited for the last would wait for hundreds of cycles.
  template <bool isRequested, int tensors>
  __device__ __forceinline__ void storePartials(
      const Outputs &outputs, const Subtiles<gemm, tile> &subtiles,
      const EpilogueStages<gemm, tile, tensors> &epilogueStages) {
    static_assert(Outputs::columns * ReductionShape<gemm, tile>::totalBytes <= subtileBytes,
                  "the totals of all warps fit one subtile");
    using Stages = EpilogueStages<gemm, tile, tensors>;
    const SharedAddress buffer = epilogueStages.buffer(0);
    if constexpr (Outputs::columns > 0) {
      constexpr bool isAnotherLeaving =
          gemm.usesTma && Stages::stepsInFlight >= 2 * Stages::together;
      if (threadIdx.x % warpgroup == 0) waitForStoresToRead<isAnotherLeaving ? 1 : 0>();
      synchronize(consumerBarrier + epilogueStages.consumer, warpgroup);
      forEach(outputs, [&](auto &total, const auto &, int place) { total.share(buffer + place); });
      synchronize(consumerBarrier + epilogueStages.consumer, warpgroup);
      forEach(outputs, [&](auto &total, const auto &, int place) { total.gather(buffer + place); });
      if constexpr (isRequested) {
        fenceForAsync();  // ahead of the stores below, for which it would wait
        synchronize(consumerBarrier + epilogueStages.consumer, warpgroup);
      }
    }
    forEach(outputs, [&](auto &total, const auto &output, int) {
      total.storePartials(*output.partials, subtiles);
    });
  }
};

/// visit(output) of all that are of rows, or of columns, in their order.
template <bool isOfRows, typename Visit>
__device__ __forceinline__ void forEachReduction(const EpilogueReductions<> &, const Visit &) {}
template <bool isOfRows, typename First, typename... Rest, typename Visit>
__device__ __forceinline__ void forEachReduction(const EpilogueReductions<First, Rest...> &outputs,
                                                 const Visit &visit) {
  if constexpr (First::Partials::isOfRows == isOfRows) visit(outputs.first);
  forEachReduction<isOfRows>(outputs.rest, visit);
}

constexpr int withProducerWarps =
    warpgroup + 64;  // threads of a consumer and of the producers that join its sums
/// Partial sums that a lane has in flight: as many as registers allow.
template <int sums>
constexpr int wordsOfConsumer = sums == 1 ? 32 : 24;
constexpr int wordsOfProducer = 32;

/// The sums of rows, or of columns. One arrival serves all of them, at the counter of the first.
template <bool isOfRows, GemmProblem gemm, Tile tile, typename Outputs>
struct StripReductions {
  using Total = TileReduction<gemm, tile, isOfRows>;
  using P = Subtiles<gemm, tile>;
  using Partials = typename Total::Partials;
  static constexpr int count = isOfRows ? Outputs::count - Outputs::columns : Outputs::columns;

  /// For a warp that has left its sums of a tile.
  __device__ __forceinline__ static unsigned arrive(const Outputs &outputs, const P &subtiles,
                                                    int warp) {
    unsigned before = 0;
    bool hasArrived = false;
    forEachReduction<isOfRows>(outputs, [&](const auto &output) {
      if (!hasArrived)
        before = ptx::count(&output.partials->arrived[Total::strip(subtiles, warp)],
                            Partials::slots - 1);
      hasArrived = true;
    });
    return before;
  }
  /// Stores the sums of a warp's strip if its arrival was the last one.
  template <int words>
  __device__ __forceinline__ static void reduceIfLast(const Outputs &outputs, const P &subtiles,
                                                      int warp, unsigned before) {
    if constexpr (count > 0) {
      if (before != Partials::slots - 1) return;
      Partials *partials[count];
      int at = 0;
      forEachReduction<isOfRows>(outputs,
                                 [&](const auto &output) { partials[at++] = output.partials; });
      sumStrips<words, count>(partials, Total::strip(subtiles, warp),
                              [&](int which, int element, float sum) {
                                const int place = Total::place(subtiles, warp, element);
                                int own = 0;
                                forEachReduction<isOfRows>(outputs, [&](const auto &output) {
                                  if (own++ == which && place < Total::extent)
                                    storeOne(output.elements + place, sum);
                                });
                              });
    }
  }
};

/// Brings the sums of `warps` warps of a consumer, from `first` on, together with those of other
/// tiles, by one warp.
template <int words, GemmProblem gemm, Tile tile, typename Outputs>
__device__ __forceinline__ void reduceStrips(const Outputs &outputs,
                                             const Subtiles<gemm, tile> &subtiles, int first,
                                             int warps) {
  using Rows = StripReductions<true, gemm, tile, Outputs>;
  using Columns = StripReductions<false, gemm, tile, Outputs>;
  const int lane = threadIdx.x % 32;
  unsigned beforeRow = 0, beforeColumn = 0;
  ptx::warpBarrier();
  if (lane < warps) {
    beforeRow = Rows::arrive(outputs, subtiles, first + lane);
    beforeColumn = Columns::arrive(outputs, subtiles, first + lane);
  }
#pragma unroll 1
  for (int warp = 0; warp < warps; ++warp) {
    Rows::template reduceIfLast<words>(outputs, subtiles, first + warp,
                                       ptx::fromLane(beforeRow, warp));
    Columns::template reduceIfLast<words>(outputs, subtiles, first + warp,
                                          ptx::fromLane(beforeColumn, warp));
  }
}

/// Joins the sums of all tiles but a consumer's last one for the consumers: what it asks for waits
/// behind the k-tiles that are in flight, thousands of cycles, and who adds strips late is late
/// again at the next. Two warps of the producers, each for half of a consumer's warps.
template <GemmProblem gemm, Tile tile, typename Outputs>
__device__ __forceinline__ void produceStripReductions(const Outputs &outputs, int half) {
  constexpr int consumersOfTile = tile.isPingPong ? 1 : TileConfig<gemm, tile>::consumers,
                warps = warpsOfConsumer / 2;
  int tiles = 0;  // of this block, before
#pragma unroll 1
  for (int index = firstTile<tile>(); index < TileConfig<gemm, tile>::tiles;
       index += nextTile<tile>(), ++tiles) {
#pragma unroll 1
    for (int of = 0; of < consumersOfTile; ++of) {
      const int consumer = tile.isPingPong ? tiles % 2 : of;
      const TilesOfConsumer<gemm, tile> own(consumer);
      if (own.isLast(index)) continue;
      synchronize(partialsStored + consumer, withProducerWarps);
      arriveAt(partialsReduced + consumer, withProducerWarps);
      reduceStrips<wordsOfProducer, gemm, tile>(
          outputs, Subtiles<gemm, tile>{tileStart<gemm, tile>(index), own.firstRow}, half * warps,
          warps);
    }
  }
}

/// A consumer's part, once a tile behind its last subtile: leaves the sums, and joins those that
/// nobody joins for it.
template <bool hasEpilogueProducer, bool isRequested, GemmProblem gemm, Tile tile, int tensors,
          typename Totals, typename... Accumulators>
__device__ __forceinline__ void storeTileReductions(
    Totals &totals, const EpilogueReductions<Accumulators...> &outputs,
    const Subtiles<gemm, tile> &subtiles, const EpilogueStages<gemm, tile, tensors> &epilogueStages,
    bool isFirst, bool isLast) {
  if (hasEpilogueProducer && !isFirst)
    synchronize(partialsReduced + epilogueStages.consumer, withProducerWarps);
  totals.template storePartials<isRequested>(outputs, subtiles, epilogueStages);
  if (hasEpilogueProducer && !isLast)
    arriveAt(partialsStored + epilogueStages.consumer, withProducerWarps);
  else
    reduceStrips<wordsOfConsumer<sizeof...(Accumulators)>>(outputs, subtiles,
                                                           threadIdx.x % warpgroup / 32, 1);
}

}  // namespace weft::sm90
