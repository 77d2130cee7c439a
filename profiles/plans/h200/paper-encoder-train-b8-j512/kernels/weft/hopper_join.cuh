// Tiles whose slices of k the blocks of a cluster share: each block sends its sums of a panel to the block that finishes it,
// into that block's shared memory, and adds what it receives to its own in the order of the blocks. So results do not depend
// on who is first. A consumer sends to the consumers of its own number.
#pragma once

#include "weft/hopper_tiles.cuh"

namespace weft::hopper {

template <Product product, Tile tile> struct Parts {
  using P = Plan<product, tile>;
  SharedAddress start, landed;
  /// Where a thread's sums of a panel from block `sender` lie in the block that finishes it.
  __device__ __forceinline__ SharedAddress place(int panel, int sender, int owner) const {
    const int slot = panel / tile.splits * (tile.splits - 1) + sender - (sender > owner ? 1 : 0);
    return start + slot * partBytes + threadIdx.x % warpgroup * 16;
  }
  static constexpr int groupBytes = warpgroup * 16;  // four sums of every thread
  static constexpr int groups = partBytes / groupBytes;
};

/// How many bytes other blocks will send; one thread of each consumer.
template <Product product, Tile tile> __device__ __forceinline__ void expectParts(const Parts<product, tile> &parts) {
  const int own = (Plan<product, tile>::panels - rankInCluster<tile>() + tile.splits - 1) / tile.splits;
  if (own > 0) arriveExpecting(parts.landed, own * (tile.splits - 1) * partBytes);
}

/// After this the first sums of a thread are those of all slices, of the panels that the block finishes: what a panel's sums are
/// must not depend on the block when they are stored, where warps meet at barriers. Once a launch.
template <Product product, Tile tile, typename Sums>
__device__ __forceinline__ void joinParts(Sums &sums, const Parts<product, tile> &parts) {
  using Place = Parts<product, tile>;
  constexpr int panels = Plan<product, tile>::panels, across = tile.n / 64;
  const int rank = rankInCluster<tile>();
#pragma unroll
  for (int panel = 0; panel < panels; ++panel) {
    const int owner = panel % tile.splits;
    if (owner == rank) continue;
    const float *own = sums[panel / across] + panel % across * 32;
    const SharedAddress to = addressInBlock(parts.place(panel, rank, owner), owner), barrier = addressInBlock(parts.landed, owner);
#pragma unroll
    for (int group = 0; group < Place::groups; ++group)
      sendSums(to + group * Place::groupBytes, barrier, own[4 * group], own[4 * group + 1], own[4 * group + 2], own[4 * group + 3]);
  }
  if (rank < panels) wait(parts.landed, 0);
#pragma unroll
  for (int panel = 0; panel < panels; ++panel) {
    if (panel % tile.splits != rank) continue;
    const int turn = panel / tile.splits;
    const float *own = sums[panel / across] + panel % across * 32;
    float *joined = sums[turn / across] + turn % across * 32;
#pragma unroll
    for (int group = 0; group < Place::groups; ++group) {
      float total[4] = {};
#pragma unroll
      for (int sender = 0; sender < tile.splits; ++sender) {
        float part[4] = {own[4 * group], own[4 * group + 1], own[4 * group + 2], own[4 * group + 3]};
        if (sender != rank) loadSums(part, parts.place(panel, sender, rank) + group * Place::groupBytes);
#pragma unroll
        for (int e = 0; e < 4; ++e) total[e] += part[e];
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) joined[4 * group + e] = total[e];
    }
  }
}

}  // namespace weft::hopper
