// Which k-tiles a block takes where the blocks of a grid share all tiles (sm90_stream_k.cuh), and
// how the accumulators that several blocks have of one tile are brought together. Where k are
// packed tokens, whose number is known at run time, tiles have as many k-tiles as hold any.
#pragma once

#include "weft/grid_memory.cuh"
#include "weft/opaque.cuh"
#include "weft/sm90_epilogue.cuh"

namespace weft::sm90 {

/// The runs of kTiles, of all blocks together in the order of tiles and of k. Of fewer k-tiles than
/// blocks the first blocks take one each.
template <GemmProblem gemm, Tile tile, int blockCount>
struct StreamKSchedule {
  using P = TileConfig<gemm, tile>;
  static constexpr Offset mostKTiles = Offset(P::tiles) * P::kTiles;
  static_assert(tile.splitK == 1 && !tile.isPingPong, "both consumers share tiles of one block");
  static_assert(P::areAllTma && mostKTiles >= 2 * blockCount && mostKTiles < (Offset(1) << 31));
  int kTiles, blocks;
  __device__ __forceinline__ explicit StreamKSchedule(const AllTokens &)
      : kTiles(P::kTiles), blocks(blockCount) {}
  __device__ __forceinline__ explicit StreamKSchedule(const SummedTokens &tokens)
      : kTiles(tokens.kTiles<gemm, tile>()), blocks(smaller(blockCount, P::tiles * kTiles)) {}
  __device__ __forceinline__ Offset total() const { return Offset(P::tiles) * kTiles; }
  /// The first k-tile of a block's run.
  __device__ __forceinline__ int first(int block) const {
    return int(smaller(block, blocks) * total() / blocks);
  }
  /// The block whose run has a kTile.
  __device__ __forceinline__ int blockOf(int kTile) const {
    return int(((kTile + Offset(1)) * blocks - 1) / total());
  }
  /// Which of its two places a block has for a tile that it shares: its run ends inside of the
  /// first one or of the last one.
  __device__ __forceinline__ int placeOf(int block, int index) const {
    return first(block) / kTiles == index ? 0 : 1;
  }
};

/// Device memory of a kernel: the accumulators that blocks leave, and who has arrived. A module's
/// own, so one launch of it at a time; counters are zero at load and again after every launch.
template <GemmProblem gemm, Tile tile, int blocks>
struct alignas(16) StreamKPartials {
  using P = TileConfig<gemm, tile>;
  static constexpr int quads = P::accumulators / 4;  // of a thread
  float of[blocks][2][P::consumers][quads][warpgroup][4];
  unsigned arrived[P::tiles][P::consumers];
};

/// Leaves a consumer's accumulators of a shared tile. True for the consumer that arrives last: then
/// they are those of all kTiles. `flags`: 16 bytes of shared memory, 8 a consumer. All threads of
/// the consumer take part.
template <GemmProblem gemm, Tile tile, int blocks>
__device__ __forceinline__ bool reduceStreamKPartials(
    Accumulators<gemm, tile> &accumulators, StreamKPartials<gemm, tile, blocks> &partials,
    const StreamKSchedule<gemm, tile, blocks> &runs, int index, int consumer, SharedAddress flags) {
  using Partials = StreamKPartials<gemm, tile, blocks>;
  constexpr int across = tile.n / 2;
  const int thread = threadIdx.x % warpgroup, begin = runs.blockOf(index * runs.kTiles),
            end = runs.blockOf(index * runs.kTiles + runs.kTiles - 1);
  auto &own = partials.of[blockIdx.x][runs.placeOf(blockIdx.x, index)][consumer];
#pragma unroll
  for (int quad = 0; quad < Partials::quads; ++quad) {
    Vec<float, 4> four;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      four.at[e] = accumulators[(quad * 4 + e) / across][(quad * 4 + e) % across];
    storeVector<4>(own[quad][thread], four);
  }
  synchronize(1 + consumer, warpgroup);
  if (thread == 0) {
    const unsigned last = end - begin;
    storePair(flags + 8 * consumer,
              ptx::arrive(&partials.arrived[index][consumer], last) == last ? 1.0f : 0.0f, 0.0f);
  }
  synchronize(1 + consumer, warpgroup);
  float isLast[4];
  loadAccumulators(isLast, flags);
  if (isLast[2 * consumer] == 0.0f) return false;
#pragma unroll
  for (int at = 0; at < 4 * Partials::quads; ++at) accumulators[at / across][at % across] = 0.0f;
#pragma unroll 1
  for (int block = begin; block <= end; ++block) {
    const auto &from = partials.of[block][runs.placeOf(block, index)][consumer];
    int place = thread;
#pragma unroll
    for (int quad = 0; quad < Partials::quads; ++quad) {
      if (quad % 8 == 0)
        place =
            opaque(thread, threadIdx.x % 32);  // all at once would not fit beside the accumulators
      float four[4];
      ptx::loadFromGrid(four, from[quad][place]);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        accumulators[(quad * 4 + e) / across][(quad * 4 + e) % across] += four[e];
    }
  }
  return true;
}

}  // namespace weft::sm90
