// Attention on sm_90a (sm90_attention.cuh) whose queries a rotary embedding rotates, in shared
// memory and in place: TMA has brought them, and WGMMA has not read them yet.
//
//    producer      q ──TMA──> a stage of queries
//    consumer      waits for the stage ──> rotates its 64 rows, of shared rows its part of them
//                  ──> fence of the async proxy, barrier of those who share the rows ──> WGMMA
//
// Both elements of a pair lie in one row of a stage, in panels of 64 columns. A stage is rotated
// once each time that it is filled, by whoever reads it, with all registers that outputs take
// later.
//
// A consumer asks for the place of a tile right before it waits for its queries. What stands in the
// place of the order of tiles (AttentionArgs::order) therefore waits itself and rotates them then;
// the producer has the order alone. The loops of consumers stay as they are.
#pragma once

#include "weft/rotated_chunks.cuh"
#include "weft/sm90_attention.cuh"

namespace weft::sm90 {

constexpr int sharedRowsBarrier = 7;  // a named barrier, behind orderedBarrier's

/// position(head, query): the factor of the angles; frequency: RotatedChunks::loadFrequencies().
template <RotatedColumns columns, typename Position, typename Frequency>
struct QueryRotation {
  static constexpr RotatedColumns rotatedColumns = columns;
  Position position;
  Frequency frequency;
};
template <RotatedColumns columns, typename Position, typename Frequency>
__device__ __forceinline__ QueryRotation<columns, Position, Frequency> queryRotation(
    const Position &position, const Frequency &frequency) {
  return {position, frequency};
}

/// The queries of a tile, which have landed at `to`, by the threads of consumers that read them.
template <typename T, AttentionProblem problem, AttentionTile tile, RotatedColumns columns,
          typename Position, typename Frequency>
__device__ __forceinline__ void rotateQueries(
    SharedAddress to, const AttentionTilePlace &at, int queries,
    const QueryRotation<columns, Position, Frequency> &rotation) {
  using C = AttentionConfig<problem, tile>;
  using Chunks = RotatedChunks<columns>;
  static_assert(columns.rotated <= problem.headDim);
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
    Chunks::loadFrequencies(frequencies, group, rotation.frequency);
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
      rotateChunks<columns, T>(words, frequencies, rotation.position(place.head, place.query));
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
template <typename T, typename Order, typename Rotate, typename Sequences>
struct RotatingOrder {
  const Order order;
  const Rotate rotation;
  const Sequences sequences;
  mutable unsigned tiles = 0;  // that this thread has asked for
};
/// Once the queries of the tile are rotated.
template <AttentionProblem problem, AttentionTile tile, typename T, typename Order, typename Rotate,
          typename Sequences>
__device__ __forceinline__ AttentionTilePlace
attentionTile(int index, const RotatingOrder<T, Order, Rotate, Sequences> &own) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const AttentionShared<problem, tile> shared{sharedAddress(memory)};
  const AttentionTilePlace at = attentionTile<problem, tile>(index, own.order);
  const StageOfPass<tile.queryStages> query(own.tiles++);
  int queries = problem.queries;
  if constexpr (problem.isPacked) queries = own.sequences.of(at.head).count;
  wait(shared.qFull(query.stage), query.parity);
  rotateQueries<T, problem, tile>(shared.q(query.stage), at, queries, own.rotation);
  return at;
}

/// The arguments of attention() with what consumers rotate queries by; the producer has them
/// without.
template <typename T, typename Args, typename Rotate>
struct RotatedArgs : Args {
  static constexpr bool rotatesQueries = true;
  RotatingOrder<T, decltype(Args::order), Rotate, decltype(Args::sequences)> order;
  __device__ __forceinline__ RotatedArgs(const Args &args, const Rotate &rotation)
      : Args(args), order{args.order, rotation, args.sequences} {}
  __device__ __forceinline__ const Args &withoutRotation() const { return *this; }
};
template <typename T, typename Rotate, typename Args>
__device__ __forceinline__ RotatedArgs<T, Args, Rotate> rotated(const Rotate &rotation,
                                                                const Args &args) {
  return {args, rotation};
}

template <AttentionProblem problem, AttentionTile tile, typename Args>
requires(Args::rotatesQueries) __device__ __forceinline__
    void produceAttention(AttentionShared<problem, tile> shared, const Args &args) {
  produceAttention<problem, tile>(shared, args.withoutRotation());
}

}  // namespace weft::sm90
