// Attention on sm_90a (sm90_attention.cuh) whose queries a rotary embedding turns, in shared memory
// and in place: TMA has brought them, and WGMMA has not read them yet.
//
//    producer      q ──TMA──> a stage of queries
//    consumer      waits for the stage ──> turns its 64 rows, of shared rows its part of them
//                  ──> fence of the async proxy, barrier of those who share the rows ──> WGMMA
//
// Both elements of a pair lie in one row of a stage, in panels of 64 columns. A stage is turned
// once each time that it is filled, by whoever reads it, with all registers that outputs take
// later.
//
// A consumer asks for the place of a tile right before it waits for its queries. What stands in the
// place of the order of tiles (AttentionArgs::order) therefore waits itself and turns them then;
// the producer has the order alone. The loops of consumers stay as they are.
#pragma once

#include "weft/sm90_attention.cuh"
#include "weft/turned_chunks.cuh"

namespace weft::sm90 {

constexpr int sharedRowsBarrier = 7;  // a named barrier, behind orderedBarrier's

/// position(head, query): the factor of the angles; frequency: TurnedChunks::loadFrequencies().
template <TurnedColumns columns, typename Position, typename Frequency>
struct QueryTurn {
  static constexpr TurnedColumns turnedColumns = columns;
  Position position;
  Frequency frequency;
};
template <TurnedColumns columns, typename Position, typename Frequency>
__device__ __forceinline__ QueryTurn<columns, Position, Frequency> queryTurn(
    const Position &position, const Frequency &frequency) {
  return {position, frequency};
}

/// The queries of a tile, which have landed at `to`, by the threads of consumers that read them.
template <typename T, AttentionProblem problem, AttentionTile tile, TurnedColumns columns,
          typename Position, typename Frequency>
__device__ __forceinline__ void turnQueries(SharedAddress to, const AttentionTilePlace &at,
                                            int queries,
                                            const QueryTurn<columns, Position, Frequency> &turn) {
  using C = AttentionConfig<problem, tile>;
  using Chunks = TurnedChunks<columns>;
  static_assert(columns.turned <= problem.headDim);
  constexpr int threads = C::keyConsumers * warpgroup, rowsAPass = threads / Chunks::groups,
                passes = (C::usedRows + rowsAPass - 1) / rowsAPass;
  const int consumer = int(threadIdx.x) / warpgroup - 1, part = C::keyConsumers == 1 ? consumer : 0;
  // What the compiler does not know: it would keep places and frequencies of a thread from tile to
  // tile, and spill for them where the loop over keys has all registers.
  const int thread = int(threadIdx.x + opaqueZero()) - (part + 1) * warpgroup;
  const int ownRow = thread / Chunks::groups, group = thread % Chunks::groups;
  const int firstOfPart = at.firstQuery + part * C::queriesOfPart;
  if (threads % Chunks::groups == 0 || ownRow < rowsAPass) {
    float frequencies[Chunks::pairs];
    Chunks::loadFrequencies(frequencies, group, turn.frequency);
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
      const int row = ownRow + pass * rowsAPass;
      RowPlace place{at.head, firstOfPart + row};
      if constexpr (tile.packedHeads > 1)
        place = placeOfPackedRow<tile.packedHeads>(at.head, firstOfPart, row);
      if (row >= C::usedRows || place.query >= queries) break;  // rows ascend
      const auto addressOf = [&](int which) {
        const int chunk = Chunks::chunk(group, which);
        return to + chunk / 8 * tile.queries * rowBytes + part * subtileBytes +
               swizzled(row, chunk % 8);
      };
      unsigned words[Chunks::chunksOfGroup][4];
#pragma unroll
      for (int which = 0; which < Chunks::chunksOfGroup; ++which)
        loadChunk(words[which], addressOf(which));
      turnChunks<columns, T>(words, frequencies, turn.position(place.head, place.query));
#pragma unroll
      for (int which = 0; which < Chunks::chunksOfGroup; ++which)
        storeChunk(addressOf(which), words[which]);
    }
  }
  fenceForAsync();
  if constexpr (C::keyConsumers == 1) synchronize(consumerBarrier + consumer, warpgroup);
  else synchronize(sharedRowsBarrier, threads);
}

/// In the place of the order of tiles, for consumers.
template <typename T, typename Order, typename Turn, typename Sequences>
struct TurningOrder {
  const Order order;
  const Turn turn;
  const Sequences sequences;
  mutable unsigned tiles = 0;  // that this thread has asked for
};
/// Once the queries of the tile are turned.
template <AttentionProblem problem, AttentionTile tile, typename T, typename Order, typename Turn,
          typename Sequences>
__device__ __forceinline__ AttentionTilePlace
attentionTile(int index, const TurningOrder<T, Order, Turn, Sequences> &own) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const AttentionShared<problem, tile> shared{sharedAddress(memory)};
  const AttentionTilePlace at = attentionTile<problem, tile>(index, own.order);
  const StageOfPass<tile.queryStages> query(own.tiles++);
  int queries = problem.queries;
  if constexpr (problem.isPacked) queries = own.sequences.of(at.head).count;
  wait(shared.qFull(query.stage), query.parity);
  turnQueries<T, problem, tile>(shared.q(query.stage), at, queries, own.turn);
  return at;
}

/// The arguments of attention() with what consumers turn queries by; the producer has them without.
template <typename T, typename Args, typename Turn>
struct TurnedArgs : Args {
  static constexpr bool turnsQueries = true;
  TurningOrder<T, decltype(Args::order), Turn, decltype(Args::sequences)> order;
  __device__ __forceinline__ TurnedArgs(const Args &args, const Turn &turn)
      : Args(args), order{args.order, turn, args.sequences} {}
  __device__ __forceinline__ const Args &withoutTurn() const { return *this; }
};
template <typename T, typename Turn, typename Args>
__device__ __forceinline__ TurnedArgs<T, Args, Turn> turned(const Turn &turn, const Args &args) {
  return {args, turn};
}

template <AttentionProblem problem, AttentionTile tile, typename Args>
requires(Args::turnsQueries) __device__ __forceinline__
    void produceAttention(AttentionShared<problem, tile> shared, const Args &args) {
  produceAttention<problem, tile>(shared, args.withoutTurn());
}

}  // namespace weft::sm90
