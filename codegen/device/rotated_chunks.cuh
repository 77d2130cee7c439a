// Rotary embeddings of rows that lie in chunks of eight elements of 16 bits: both elements of a
// pair in fp32, rounded once, as a kernel of the rotary op alone stores them.
//
//    halved       chunk c has first elements, chunk c + rotated / 16 their partners
//    interleaved  chunk c has four pairs
//
// A thread that keeps to one group of chunks, of row after row, has the frequencies of its pairs in
// registers; a sine and a cosine serve both elements of a pair.
#pragma once

#include "weft/pack.cuh"
#include "weft/short_rotation.cuh"
#include "weft/vector.cuh"

namespace weft {

/// Which elements of a row are pairs, the first `rotated`, and which way they are rotated. isShort:
/// results of 16 bits (short_rotation.cuh).
struct RotatedColumns {
  int rotated;
  bool isHalved = true, isReverse = false, isShort = false;
};

/// The chunks of a row that are rotated, by groups: those of the same pairs.
template <RotatedColumns columns>
struct RotatedChunks {
  static constexpr int chunksOfGroup = columns.isHalved ? 2 : 1,
                       pairs = columns.isHalved ? 8 : 4,  // of a group
      groups = columns.rotated / (8 * chunksOfGroup),
                       chunks = groups * chunksOfGroup;  // those behind them stay
  static_assert(chunks * 8 == columns.rotated, "pairs fill whole chunks");
  /// The first chunk of a group, and the last one.
  static __device__ __forceinline__ constexpr int chunk(int group, int which) {
    return group + which * groups;
  }
  /// Of the pairs of a group. frequency(int column): of the pair whose first element is there.
  template <typename Frequency>
  static __device__ __forceinline__ void loadFrequencies(float (&frequencies)[pairs], int group,
                                                         const Frequency &frequency) {
#pragma unroll
    for (int pair = 0; pair < pairs; ++pair)
      frequencies[pair] = frequency(group * 8 + pair * (columns.isHalved ? 1 : 2));
  }
};

template <typename T>
__device__ __forceinline__ Vec<float, 2> pairOf(unsigned word) {
  return unpack(__builtin_bit_cast(Packed<T, 2>, word));
}

/// Rotates the chunks of a group of one row, four words each.
template <RotatedColumns columns, typename T>
__device__ __forceinline__ void rotateChunks(
    unsigned (&words)[RotatedChunks<columns>::chunksOfGroup][4],
    const float (&frequencies)[RotatedChunks<columns>::pairs], int position) {
  constexpr T *type = nullptr;
  constexpr int last = RotatedChunks<columns>::chunksOfGroup - 1;
  const auto rotate = [&](float frequency, float &first, float &second) {
    const Rotation own =
        columns.isShort ? shortRotation(position, frequency) : rotation(position, frequency);
    const float sine = columns.isReverse ? -own.sine : own.sine, a = first, b = second;
    first = a * own.cosine - b * sine;
    second = b * own.cosine + a * sine;
  };
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    Vec<float, 2> first = pairOf<T>(words[0][word]);
    if constexpr (columns.isHalved) {
      Vec<float, 2> second = pairOf<T>(words[last][word]);
#pragma unroll
      for (int e = 0; e < 2; ++e) rotate(frequencies[word * 2 + e], first.at[e], second.at[e]);
      words[last][word] = packPair(type, second.at[0], second.at[1]);
    } else {
      rotate(frequencies[word], first.at[0], first.at[1]);
    }
    words[0][word] = packPair(type, first.at[0], first.at[1]);
  }
}

}  // namespace weft
