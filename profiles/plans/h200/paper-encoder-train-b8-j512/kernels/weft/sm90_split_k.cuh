// Tiles whose k-tiles the blocks of a cluster share: each block sends its accumulators of a subtile
// to the block that finishes it, into that block's shared memory, and adds what it receives to its
// own in the order of the blocks. So results do not depend on who is first. A consumer sends to the
// consumers of its number.
#pragma once

#include "weft/sm90_barrier.cuh"
#include "weft/sm90_cluster.cuh"
#include "weft/sm90_tiles.cuh"

namespace weft::sm90 {

template <GemmProblem gemm, Tile tile>
struct ClusterPartials {
  using P = TileConfig<gemm, tile>;
  SharedAddress start, landed;
  /// Where a thread's accumulators of a subtile from block `sender` lie in the block that finishes
  /// it.
  __device__ __forceinline__ SharedAddress place(int subtile, int sender, int owner) const {
    const int slot = subtile / tile.splitK * (tile.splitK - 1) + sender - (sender > owner ? 1 : 0);
    return start + slot * partialTileBytes + threadIdx.x % warpgroup * 16;
  }
  static constexpr int groupBytes = warpgroup * 16;  // four accumulators of every thread
  static constexpr int groups = partialTileBytes / groupBytes;
};

/// How many bytes other blocks will send; one thread of each consumer.
template <GemmProblem gemm, Tile tile>
__device__ __forceinline__ void expectPartials(const ClusterPartials<gemm, tile> &clusterPartials) {
  const int own =
      (TileConfig<gemm, tile>::subtiles - rankInCluster<tile>() + tile.splitK - 1) / tile.splitK;
  if (own > 0) arriveExpecting(clusterPartials.landed, own * (tile.splitK - 1) * partialTileBytes);
}

/// After this the first accumulators of a thread are those of all kTiles, of the subtiles that the
/// block finishes: what a subtile's accumulators are must not depend on the block when they are
/// stored, where warps meet at barriers. Once a launch.
template <GemmProblem gemm, Tile tile, typename Accumulators>
__device__ __forceinline__ void reducePartials(Accumulators &accumulators,
                                               const ClusterPartials<gemm, tile> &clusterPartials) {
  using Place = ClusterPartials<gemm, tile>;
  constexpr int subtiles = TileConfig<gemm, tile>::subtiles, across = tile.n / 64;
  const int rank = rankInCluster<tile>();
#pragma unroll
  for (int subtile = 0; subtile < subtiles; ++subtile) {
    const int owner = subtile % tile.splitK;
    if (owner == rank) continue;
    const float *own = accumulators[subtile / across] + subtile % across * 32;
    const SharedAddress to = addressInBlock(clusterPartials.place(subtile, rank, owner), owner),
                        barrier = addressInBlock(clusterPartials.landed, owner);
#pragma unroll
    for (int group = 0; group < Place::groups; ++group)
      sendAccumulators(to + group * Place::groupBytes, barrier, own[4 * group], own[4 * group + 1],
                       own[4 * group + 2], own[4 * group + 3]);
  }
  if (rank < subtiles) wait(clusterPartials.landed, 0);
#pragma unroll
  for (int subtile = 0; subtile < subtiles; ++subtile) {
    if (subtile % tile.splitK != rank) continue;
    const int storeStep = subtile / tile.splitK;
    const float *own = accumulators[subtile / across] + subtile % across * 32;
    float *joined = accumulators[storeStep / across] + storeStep % across * 32;
#pragma unroll
    for (int group = 0; group < Place::groups; ++group) {
      float total[4] = {};
#pragma unroll
      for (int sender = 0; sender < tile.splitK; ++sender) {
        float peerPartial[4] = {own[4 * group], own[4 * group + 1], own[4 * group + 2],
                                own[4 * group + 3]};
        if (sender != rank)
          loadAccumulators(peerPartial, clusterPartials.place(subtile, sender, rank) +
                                            group * Place::groupBytes);
#pragma unroll
        for (int e = 0; e < 4; ++e) total[e] += peerPartial[e];
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) joined[4 * group + e] = total[e];
    }
  }
}

}  // namespace weft::sm90
