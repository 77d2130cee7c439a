// Attention from sm_80 on (sm80_attention.cuh) whose queries a rotary embedding rotates: on the way
// from memory to shared memory, in registers.
//
//    q ──16 bytes──> registers ──rotated, rounded─> shared   columns that are pairs
//    q ──cp.async─────────────────────────────────> shared   columns behind them
//
// A tile of queries is loaded once and read by all tiles of keys, so each query is rotated once.
//
// The kernel finds copyQueries() by the type of the places of heads; kernels that rotate nothing do
// not depend on this header.
#pragma once

#include "weft/rotated_chunks.cuh"
#include "weft/sm80_attention.cuh"

namespace weft::sm80 {

/// In the place of the function that says where heads begin. position(head, query): the factor of
/// the angles; frequency: RotatedChunks::loadFrequencies().
template <RotatedColumns columns, typename PlacesOfHead, typename Position, typename Frequency>
struct RotatedPlaces {
  PlacesOfHead placesOfHead;
  Position position;
  Frequency frequency;
  __device__ __forceinline__ HeadPlaces operator()(int head) const { return placesOfHead(head); }
};
template <RotatedColumns columns, typename PlacesOfHead, typename Position, typename Frequency>
__device__ __forceinline__ RotatedPlaces<columns, PlacesOfHead, Position, Frequency> rotatedPlaces(
    const PlacesOfHead &placesOfHead, const Position &position, const Frequency &frequency) {
  return {placesOfHead, position, frequency};
}

/// Stores the queries of a block, rotated; rows behind the last one as zeros.
template <AttentionShape shape, AttentionTile tile, typename T, RotatedColumns columns,
          typename PlacesOfHead, typename Position, typename Frequency>
__device__ __forceinline__ void copyQueries(
    SharedAddress to, const T *q,
    const RotatedPlaces<columns, PlacesOfHead, Position, Frequency> &places,
    const AttentionPlace &at) {
  using P = AttentionConfig<shape, tile>;
  using Rows = typename P::HeadRows;
  using Chunks = RotatedChunks<columns>;
  constexpr int rowsAPass = P::threads / Chunks::groups,
                passes = (tile.queries + rowsAPass - 1) / rowsAPass,
                inFlight = smaller(passes, 4);  // rows of a thread whose loads wait together
  static_assert(rowsAPass > 0 && columns.rotated <= shape.headDim);
  const auto placeOf = [&](int row) {
    const bool isInside = row < tile.queries && at.firstRow + row <= at.lastRow;
    return placeOfRow<tile>(at, isInside ? at.firstRow + row : at.firstRow);
  };
  const int ownRow = threadIdx.x / Chunks::groups, group = threadIdx.x % Chunks::groups;
  if (P::threads % Chunks::groups == 0 || ownRow < rowsAPass) {
    float frequencies[Chunks::pairs];
    Chunks::loadFrequencies(frequencies, group, places.frequency);
#pragma unroll 1
    for (int pass = 0; pass < passes; pass += inFlight) {
      unsigned words[inFlight][Chunks::chunksOfGroup][4];
#pragma unroll
      for (int n = 0; n < inFlight; ++n) {
        const int row = ownRow + (pass + n) * rowsAPass;
        const bool isInside = row < tile.queries && at.firstRow + row <= at.lastRow;
        const RowPlace place = placeOf(row);
        const T *from = q + places(place.head).q + place.query * shape.rowQ;
#pragma unroll
        for (int which = 0; which < Chunks::chunksOfGroup; ++which) {
          Packed<unsigned, 4> loaded = {};
          if (isInside)
            loaded = *reinterpret_cast<const Packed<unsigned, 4> *>(
                from + Chunks::chunk(group, which) * chunk);
#pragma unroll
          for (int word = 0; word < 4; ++word) words[n][which][word] = loaded.at[word];
        }
      }
#pragma unroll
      for (int n = 0; n < inFlight; ++n) {
        const int row = ownRow + (pass + n) * rowsAPass;
        if (tile.queries % (rowsAPass * inFlight) != 0 && row >= tile.queries) break;
        const RowPlace place = placeOf(row);
        rotateChunks<columns, T>(words[n], frequencies, places.position(place.head, place.query));
#pragma unroll
        for (int which = 0; which < Chunks::chunksOfGroup; ++which)
          storeShared(to + Rows::placeOf(row, Chunks::chunk(group, which)), words[n][which]);
      }
    }
  }
  constexpr int left = Rows::chunks - Chunks::chunks;  // with the padding of a row
  if constexpr (left > 0) {
#pragma unroll 1
    for (int piece = threadIdx.x; piece < tile.queries * left; piece += P::threads) {
      const int row = piece / left, column = Chunks::chunks + piece % left;
      const RowPlace place = placeOf(row);
      const T *from = q + places(place.head).q + place.query * shape.rowQ;
      const bool isInside = at.firstRow + row <= at.lastRow && column * chunk < shape.headDim;
      copyAsync(to + Rows::placeOf(row, column), isInside ? from + column * chunk : from,
                isInside ? 16 : 0);
    }
  }
}

}  // namespace weft::sm80
