// A rotary embedding behind the products of a GEMM (sm90_gemm.cuh): accumulators are rotated in
// registers before the epilogue takes them.
//
// A tile has whole heads: `extent` columns each, of which the first `rotated` are pairs. Of every
// eight columns a lane holds two, lane % 4 * 2 and the next one, so that it holds both of a pair:
//
//    halved       columns c and c + rotated / 2, where that is a multiple of eight
//    interleaved  columns c and c + 1
//
// The sine and the cosine of a row and a pair serve all heads of the tile.
//
// The kernel template finds storeEpilogue() by the type of its arguments; kernels that rotate
// nothing do not depend on this header.
#pragma once

#include "weft/short_rotation.cuh"
#include "weft/sm90_epilogue.cuh"

namespace weft::sm90 {

/// Which elements of a head are pairs, and which way they are rotated. isShort: results of 16 bits
/// (short_rotation.cuh).
struct RotaryPairs {
  int extent, rotated;
  bool isHalved = true, isReverse = false, isShort = false;
};

/// That every head is rotated; else a function that says whether those of a tile are.
struct AllHeads {
  __device__ __forceinline__ constexpr bool operator()(const Fragment &) const { return true; }
};

/// An epilogue behind a rotary embedding. `position` is that of a row, `frequency` that of a pair.
template <RotaryPairs pairs, typename Position, typename Frequency, typename IsRotated,
          typename Epilogue>
struct Rotated {
  Position position;
  Frequency frequency;
  IsRotated isRotated;
  Epilogue epilogue;
};
template <RotaryPairs pairs, typename Position, typename Frequency, typename IsRotated,
          typename Epilogue>
__device__ __forceinline__ Rotated<pairs, Position, Frequency, IsRotated, Epilogue> rotated(
    const Position &position, const Frequency &frequency, const IsRotated &isRotated,
    const Epilogue &epilogue) {
  return {position, frequency, isRotated, epilogue};
}

/// Rotates the accumulators of a tile, all of whose heads are rotated or none.
template <RotaryPairs pairs, GemmProblem gemm, Tile tile, typename Rotary>
__device__ __forceinline__ void rotateAccumulators(Accumulators<gemm, tile> &accumulators,
                                                   const Subtiles<gemm, tile> &subtiles,
                                                   const Rotary &rotary) {
  constexpr int group = 8, heads = tile.n / pairs.extent,
                rowBlocks = TileConfig<gemm, tile>::rowBlocks;
  // Columns from the first of a pair to the second, and groups of columns that have first ones.
  constexpr int distance = pairs.isHalved ? pairs.rotated / 2 : 1,
                groups = (pairs.isHalved ? pairs.rotated / 2 : pairs.rotated) / group;
  static_assert(tile.n % pairs.extent == 0, "a tile has whole heads");
  static_assert(groups * group == (pairs.isHalved ? pairs.rotated / 2 : pairs.rotated) &&
                    pairs.extent % group == 0,
                "a lane holds both of a pair");
  static_assert(tile.splitK == 1 || 64 % pairs.extent == 0, "a block finishes whole heads");
  // Where blocks share a tile, each has the accumulators of its subtiles first (sm90_split_k.cuh).
  constexpr bool isShared = tile.splitK > 1;
  constexpr int parts = isShared ? Subtiles<gemm, tile>::storeSteps : rowBlocks,
                headsOfPart = isShared ? 64 / pairs.extent : heads;
  const int lane = threadIdx.x % 32, ownRow = threadIdx.x % warpgroup / 32 * 16 + lane / 4;
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const int subtile =
        isShared ? Subtiles<gemm, tile>::ofStep(part) : part * Subtiles<gemm, tile>::across;
    const Fragment first{subtiles.at.batch, subtiles.row(subtile) + ownRow,
                         subtiles.column(subtile)};
    const int isRotated = rotary.isRotated(first);
    const int positions[2] = {rotary.position(first),
                              rotary.position(Fragment{first.batch, first.row + 8, first.column})};
    float *own = isShared ? accumulators[part / Subtiles<gemm, tile>::across] +
                                part % Subtiles<gemm, tile>::across * 32
                          : accumulators[part];
#pragma unroll
    for (int at = 0; at < groups; ++at) {
      // Asked again for every group: the compiler would have angles of as many as it finds
      // registers for, and spill accumulators.
      if (opaque(isRotated, 0) == 0) continue;
      const int ownPair = lane % 4;
#pragma unroll
      for (int column = 0; column < (pairs.isHalved ? 2 : 1); ++column) {
        const int pair =
            pairs.isHalved ? at * group + ownPair * 2 + column : at * group / 2 + ownPair;
        const float frequency = rotary.frequency(pair);
#pragma unroll
        for (int lower = 0; lower < 2; ++lower) {
          const Rotation angle = pairs.isShort ? shortRotation(positions[lower], frequency)
                                               : rotation(positions[lower], frequency);
          const float sine = pairs.isReverse ? -angle.sine : angle.sine;
#pragma unroll
          for (int head = 0; head < headsOfPart; ++head) {
            const int place = (head * pairs.extent / group + at) * 4 + lower * 2 + column,
                      partner = place + (pairs.isHalved ? distance / group * 4 : 1);
            const float a = own[place], b = own[partner];
            own[place] = a * angle.cosine - b * sine;
            own[partner] = b * angle.cosine + a * sine;
          }
        }
      }
    }
  }
}

/// Rotates the accumulators, and stores them as the epilogue behind says.
template <GemmProblem gemm, Tile tile, typename T, typename SubtileIn, typename VectorIn,
          typename SubtileOut, typename ReductionsOut, RotaryPairs pairs, typename Position,
          typename Frequency, typename IsRotated, typename Epilogue>
__device__ __forceinline__ void storeEpilogue(
    Accumulators<gemm, tile> &accumulators, Tensor<T> c, const Subtiles<gemm, tile> &subtiles,
    EpilogueStages<gemm, tile,
                   EpilogueOp<SubtileIn, VectorIn, SubtileOut, ReductionsOut,
                              Rotated<pairs, Position, Frequency, IsRotated, Epilogue>>::tensors>
        &epilogueStages,
    const VectorOfTile<gemm, tile, VectorIn> &vector,
    TileReductions<gemm, tile, ReductionsOut> &totals,
    const EpilogueOp<SubtileIn, VectorIn, SubtileOut, ReductionsOut,
                     Rotated<pairs, Position, Frequency, IsRotated, Epilogue>> &epilogueOp) {
  if (!subtiles.isUnused)
    rotateAccumulators<pairs, gemm, tile>(accumulators, subtiles, epilogueOp.epilogue);
  const EpilogueOp<SubtileIn, VectorIn, SubtileOut, ReductionsOut, Epilogue> behind{
      epilogueOp.subtile, epilogueOp.vector, epilogueOp.output, epilogueOp.reductions,
      epilogueOp.epilogue.epilogue};
  storeEpilogue(accumulators, c, subtiles, epilogueStages, vector, totals, behind);
}

}  // namespace weft::sm90
