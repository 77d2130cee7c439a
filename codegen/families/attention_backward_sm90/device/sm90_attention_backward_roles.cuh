// What the roles of kernels of attention backward hand to each other through shared memory: numbers
// of tiles, blocks, values of rows, arrivals of warps; and operands there by short descriptors.
#pragma once

#include "weft/score_gradients.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_heads.cuh"
#include "weft/sm90_ordered_sum.cuh"
#include "weft/sm90_shared.cuh"
#include "weft/tile_coverage.cuh"
#include "weft/warp.cuh"
#include "weft/wgmma.cuh"

namespace weft::sm90 {

template <typename Coverage>
concept SeesAll = __is_base_of(FullCoverage, Coverage);
template <typename Dropout>
concept KeepsAll = __is_base_of(NoDropout, Dropout);

/// Added to the number of a tile whose scores masks exclude all.
constexpr int nothingSeen = 1 << 30;

/// A block of scores of a tile, as one warp tells consumers of it: words of shared memory.
struct BackwardBlock {
  enum Flag : int { mixed = 1, last = 2 };
  int head, firstColumn;  ///< a query of a tile of keys, a key of a tile of queries
  /// mixed: masks decide score by score; last: no other follows for the tile.
  int flags;
};

__device__ __forceinline__ void tell(SharedAddress place, const BackwardBlock &block) {
  storeWords(place, {unsigned(block.head), unsigned(block.firstColumn), unsigned(block.flags), 0});
}
__device__ __forceinline__ BackwardBlock told(SharedAddress place) {
  unsigned words[4];
  loadWords(words, place);
  return {int(words[0]), int(words[1]), int(words[2])};
}
/// A row's values, a word each.
template <typename Row>
__device__ __forceinline__ void storeRow(SharedAddress place, const Row &row) {
  struct Words {
    unsigned at[sizeof(Row) / 4];
  };
  const Words words = __builtin_bit_cast(Words, row);
#pragma unroll
  for (int w = 0; w < int(sizeof(Row) / 4); ++w) storeWord(place + w * 4, words.at[w]);
}
/// Those of two neighbours; the first one's number is even.
template <typename Row>
__device__ __forceinline__ void loadRows(Row (&rows)[2], SharedAddress place) {
  struct Words {
    unsigned at[sizeof(Row) / 4];
  };
  Words words[2];
  if constexpr (sizeof(Row) == 8) {
    unsigned both[4];
    loadWords(both, place);
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w / 2].at[w % 2] = both[w];
  } else {
#pragma unroll
    for (int w = 0; w < int(sizeof(Row) / 4); ++w) {
      words[0].at[w] = loadWord(place + w * 4);
      words[1].at[w] = loadWord(place + int(sizeof(Row)) + w * 4);
    }
  }
  rows[0] = __builtin_bit_cast(Row, words[0]);
  rows[1] = __builtin_bit_cast(Row, words[1]);
}

/// The number of the tile, which the producer tells (tileNumber); the caller's arrival frees its
/// place. All lanes of the warp take part.
template <typename Shared>
__device__ __forceinline__ int takeTile(const Shared &shared, unsigned tiles) {
  const StageOfPass<2> place(tiles);
  wait(shared.tileFull(place.stage), place.parity);
  int index;
  asm volatile("ld.shared::cta.s32 %0, [%1];"
               : "=r"(index)
               : "r"(shared.tileNumber(place.stage))
               : "memory");
  index = __shfl_sync(~0u, index, 0);  // known to be one of the warp: what follows is uniform
  if (threadIdx.x % 32 == 0) arrive(shared.tileEmpty(place.stage));
  return index;
}

/// An arrival of a warp, for all that its lanes did.
__device__ __forceinline__ void signal(SharedAddress barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(barrier);
}

/// As describeOperand() has it, by one addition: shared memory begins at `start`, a multiple of
/// 1024 bytes, so that 16 bytes of an address are one of the field.
__device__ __forceinline__ unsigned long long describeWithin(SharedAddress start,
                                                             SharedAddress place,
                                                             int subtileStride) {
  return describeOperand(0, subtileStride) >> 32 << 32 |
         ((start & 0x3FFFF) / 16 + (place - start) / 16 + (unsigned(subtileStride) / 16 << 16));
}

}  // namespace weft::sm90
