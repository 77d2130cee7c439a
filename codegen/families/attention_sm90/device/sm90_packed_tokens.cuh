// Fused attention over packed tokens (packed_sequences.cuh): the order in which blocks take tiles,
// and rows of a sequence that share a box with those of another one.
//
// Sequences are taken 32 at a time, one a lane of the producer's warp, those of most tokens first;
// of each, all heads, tile by tile from the last one. So tiles without tokens are never taken, and
// the longest ones begin first. One sequence has no order to be found.
#pragma once

#include "weft/packed_sequences.cuh"
#include "weft/sm90_attention_tiles.cuh"
#include "weft/sm90_barrier.cuh"
#include "weft/sm90_shared.cuh"
#include "weft/sm90_swizzle.cuh"

namespace weft::sm90 {

/// Asks L2 for `count` words, a line a thread: loads that wait for one another find them there.
__device__ __forceinline__ void prefetchWords(const int *words, int count) {
  constexpr int wordsOfLine = 32;
  for (int at = int(threadIdx.x) * wordsOfLine; at < count; at += int(blockDim.x) * wordsOfLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(words + at));
}

/// Words of the block's own shared memory.
__device__ __forceinline__ void storeWord(SharedAddress to, int word) {
  asm volatile("st.shared::cta.s32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}
__device__ __forceinline__ int loadWord(SharedAddress from) {
  int word;
  asm volatile("ld.shared::cta.s32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

/// The tiles that have tokens, as the producer's warp counts them; all lanes call together. What
/// lanes know of a group of sequences stays in shared memory, since the warp has few registers.
template <AttentionProblem problem, AttentionTile tile, typename Sequences>
struct PackedTiles {
  using C = AttentionConfig<problem, tile>;
  static constexpr int lanes = 32, groups = (Sequences::count + lanes - 1) / lanes,
                       headsOfSequence = problem.heads / Sequences::count;
  static constexpr bool isOne = Sequences::count == 1;
  const Sequences &sequences;
  /// A word a lane, of each in turn: a sequence, tiles of one of its heads, and the tiles of all
  /// heads of the sequences up to and with it; then words of the warp.
  const SharedAddress words;

  static __device__ __forceinline__ int lane() { return int(threadIdx.x % lanes); }
  __device__ __forceinline__ SharedAddress sequenceWord(int lane) const { return words + lane * 4; }
  __device__ __forceinline__ SharedAddress tilesWord(int lane) const {
    return words + (lanes + lane) * 4;
  }
  __device__ __forceinline__ SharedAddress upToWord(int lane) const {
    return words + (2 * lanes + lane) * 4;
  }
  /// The group at hand, tiles of those in front of it, and of all.
  __device__ __forceinline__ SharedAddress groupWord() const { return words + 3 * lanes * 4; }
  __device__ __forceinline__ SharedAddress beforeWord() const { return groupWord() + 4; }
  __device__ __forceinline__ SharedAddress countWord() const { return groupWord() + 8; }

  static __device__ __forceinline__ int summedBelow(int value) {
#pragma unroll
    for (int step = 1; step < lanes; step *= 2) {
      const int other = __shfl_sync(~0u, value, (lane() + lanes - step) % lanes);
      if (lane() >= step) value += other;
    }
    return value;
  }
  __device__ __forceinline__ int countOf(int index) const {
    const int own = index * lanes + lane();
    return own < Sequences::count ? sequences.at(own).count : 0;
  }
  static __device__ __forceinline__ int tilesOf(int tokens) {
    return (tokens + tile.queries - 1) / tile.queries;
  }

  /// Before anything else.
  __device__ __forceinline__ void start() const {
    if constexpr (isOne) {
      storeWord(countWord(), tilesOf(sequences.at(0).count) * headsOfSequence);
      __syncwarp();
      return;
    }
    int tiles = 0;
#pragma unroll 1
    for (int index = 0; index < groups; ++index) tiles += tilesOf(countOf(index));
    storeWord(countWord(), __shfl_sync(~0u, summedBelow(tiles), lanes - 1) * headsOfSequence);
    storeWord(beforeWord(), 0);
    take(0);
  }
  /// Of all sequences and heads.
  __device__ __forceinline__ int count() const { return loadWord(countWord()); }

  /// The lanes' words of a group, in the order of its lengths.
  __device__ __forceinline__ void take(int index) const {
    storeWord(groupWord(), index);
    const int count = countOf(index);
    constexpr int most = smaller(Sequences::count, lanes), atOnce = smaller(most, 8);
    int place = larger(lane() - most, 0);  // sequences that come before the lane's
#pragma unroll atOnce
    for (int other = 0; other < most; ++other) {
      const int own = __shfl_sync(~0u, count, other);
      place += own > count || (own == count && other < lane()) ? 1 : 0;
    }
    storeWord(sequenceWord(place), index * lanes + lane());
    storeWord(tilesWord(place), tilesOf(count));
    __syncwarp();
    storeWord(upToWord(lane()), summedBelow(loadWord(tilesWord(lane())) * headsOfSequence));
    __syncwarp();
  }

  /// Tile `index` of those, as head * queryTiles + its number in the head; numbers are asked for in
  /// ascending order, and less than count().
  __device__ __forceinline__ int at(int index) const {
    if constexpr (isOne) {
      const int tiles = count() / headsOfSequence;
      return index / tiles * C::queryTiles + tiles - 1 - index % tiles;
    }
    if constexpr (groups > 1)
      while (true) {
        const int end = loadWord(beforeWord()) + loadWord(upToWord(lanes - 1)),
                  next = loadWord(groupWord()) + 1;
        if (index < end) break;
        __syncwarp();
        storeWord(beforeWord(), end);
        take(next);
      }
    const int inGroup = groups > 1 ? index - loadWord(beforeWord()) : index;
    const unsigned behind =
        __ballot_sync(~0u, loadWord(upToWord(lane())) > inGroup);  // the last lanes
    const int owner = 31 - __clz(int(behind & (0u - behind))), tiles = loadWord(tilesWord(owner)),
              rest = inGroup - (loadWord(upToWord(owner)) - tiles * headsOfSequence);
    return sequences.headOf(loadWord(sequenceWord(owner)), rest / tiles) * C::queryTiles + tiles -
           1 - rest % tiles;
  }
};

/// 16 bytes of the block's own shared memory.
__device__ __forceinline__ void loadChunk(unsigned (&words)[4], SharedAddress from) {
  asm volatile("ld.shared::cta.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(from)
               : "memory");
}

struct alignas(16) RowChunk {
  unsigned words[4];
};

/// A chunk of 8 elements of a row of `columns`, those that there are, from `column` on.
template <int columns, typename T>
__device__ __forceinline__ void storeRowChunk(T *row, int column, const unsigned (&words)[4]) {
  if (columns % 8 == 0 || column + 8 <= columns) {
    *reinterpret_cast<RowChunk *>(row + column) = {words[0], words[1], words[2], words[3]};
    return;
  }
  const T *const elements = reinterpret_cast<const T *>(words);
  for (int i = 0; i < 8; ++i)
    if (column + i < columns) row[column + i] = elements[i];
}

/// Rows of a warpgroup's part of the output, staged in panels of `rows` rows, to the first `count`
/// of them in memory. `rowAt`: T *(int head, int token).
template <int columns, int rows, typename RowAt>
__device__ __forceinline__ void storeRows(SharedAddress staged, const RowAt &rowAt, int head,
                                          int token, int count) {
  constexpr int chunksOfRow = (columns + 7) / 8;
  for (int place = int(threadIdx.x % warpgroup); place < count * chunksOfRow; place += warpgroup) {
    const int row = place / chunksOfRow, chunk = place % chunksOfRow;
    unsigned words[4];
    loadChunk(words, staged + chunk / 8 * rows * rowBytes + swizzled(row, chunk % 8));
    storeRowChunk<columns>(rowAt(head, token + row), chunk * 8, words);
  }
}

}  // namespace weft::sm90
