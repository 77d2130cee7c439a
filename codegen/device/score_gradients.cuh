// What a kernel of the backward pass of attention asks of one score, whatever its family: the
// probability again, from the score and the logarithm of its row's sum, and the gradients that the
// products behind it read.
#pragma once

#include "weft/attention_dropout.cuh"
#include "weft/pack.cuh"
#include "weft/ptx.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/types.cuh"

namespace weft {

/// kept: the probability, or what dropout leaves of it, which the gradient of values is summed
/// from; dScore: the gradient of the dot product, which those of queries and keys are summed from.
struct ScoreGradients {
  float kept, dScore;
};
/// The same where another gradient than that of the dot product is stored: that of a bias which is
/// added behind a soft cap.
struct ScoreGradientsBeside : ScoreGradients {
  float stored;
};
template <typename Gradients>
constexpr bool storesBeside = __is_base_of(ScoreGradientsBeside, Gradients);

/// What a kernel's element-wise ops give of a score.
template <typename Args>
using GradientsOf = decltype(static_cast<Args *>(nullptr)->gradients(
    0.0f, 0.0f, typename Args::Row{}, 0, 0, 0, false));

/// What is stored of two neighbouring scores, whose gradients of dot products `packed` has.
template <typename T, typename Gradients>
__device__ __forceinline__ unsigned storedPair(const T *, const Gradients (&found)[2],
                                               unsigned packed) {
  if constexpr (storesBeside<Gradients>)
    return packPair(static_cast<T *>(nullptr), found[0].stored, found[1].stored);
  else return packed;
}

/// What the scores of a row read of tensors of rows, once for all of them.
template <int count>
struct ScoreRow {
  float at[count];
};

/// Minus the logarithm of a row's sum to base 2, as probabilityOf() takes it. A row that saw
/// nothing, whose logarithm is -inf, has -inf: its probabilities are zero.
__device__ __forceinline__ float negatedLogSum(float logSum) {
  return logSum == negativeInfinity ? logSum : logSum * -1.44269504f;
}
/// 2^(factor * score + negatedLogSum): e^(scale * score - logSum) with factor = log2(e) * scale.
/// The relative error is that of the exponent: at most 2^-22 + |logSum| 2^-24 + |exponent| 2^-23.
__device__ __forceinline__ float probabilityOf(float score, float factor, float negatedLogSum) {
  return ptx::exp2(fmaf(score, factor, negatedLogSum));
}

/// In the place of what stores the gradients of two neighbouring scores, where none are stored.
struct NoScoreStore {
  __device__ __forceinline__ void operator()(int, int, int, unsigned) const {}
};
/// Two neighbours in memory, of which the first starts a word.
template <typename T>
__device__ __forceinline__ void storeScorePair(T *to, unsigned pair) {
  *reinterpret_cast<unsigned *>(to) = pair;
}
/// The first of two elements, and the next one `stride` behind it if it is inside.
template <typename T>
__device__ __forceinline__ void storeScores(T *to, Offset stride, unsigned pair,
                                            bool isNextInside) {
  *to = {static_cast<unsigned short>(pair)};
  if (isNextInside) to[stride] = {static_cast<unsigned short>(pair >> 16)};
}

/// Stores zeros for tiles of which masks leave nothing, which no other loop visits: in turn over
/// the blocks of the grid, all threads of a block together. Nothing where no gradient is stored, or
/// no mask is. pairsOfKeys: what `store` takes are a query and two keys, else two queries and a
/// key.
template <int heads, int queries, int keys, int tileQueries, int tileKeys, bool pairsOfKeys,
          int threads, typename Coverage, typename StoreScores>
__device__ __forceinline__ void storeMaskedScores(const Coverage &coverage,
                                                  const StoreScores &store) {
  if constexpr (!__is_base_of(NoScoreStore, StoreScores) && !__is_base_of(FullCoverage, Coverage)) {
    constexpr int queryTiles = (queries + tileQueries - 1) / tileQueries,
                  keyTiles = (keys + tileKeys - 1) / tileKeys,
                  columns = pairsOfKeys ? tileKeys / 2 : tileKeys;
#pragma unroll 1
    for (int tile = int(blockIdx.x); tile < heads * queryTiles * keyTiles; tile += int(gridDim.x)) {
      const int firstKey = tile % keyTiles * tileKeys,
                firstQuery = tile / keyTiles % queryTiles * tileQueries,
                head = tile / (keyTiles * queryTiles),
                lastKey = firstKey + tileKeys < keys ? firstKey + tileKeys - 1 : keys - 1,
                lastQuery =
                    firstQuery + tileQueries < queries ? firstQuery + tileQueries - 1 : queries - 1;
      if (coverage(head, firstQuery, lastQuery, firstKey, lastKey) != TileCoverage::empty) continue;
#pragma unroll 1
      for (int pair = int(threadIdx.x); pair < tileQueries * tileKeys / 2; pair += threads)
        store(head, firstQuery + pair / columns * (pairsOfKeys ? 1 : 2),
              firstKey + pair % columns * (pairsOfKeys ? 2 : 1), 0u);
    }
  }
}

}  // namespace weft
